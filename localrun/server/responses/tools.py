"""Tools of OpenAI's Responses: functions, functions in namespaces, tools of free text, and the search for more tools.

A template knows functions only. A tool of free text becomes one with a single argument, and the search one with those
that it has; calls of them are told as the client knows them, and so is the namespace that a tool is in.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.server.request.function_tools import tool_name
from localrun.server.request.json_body import Body

_INPUT = "input"
_PLAIN = "functions"  # the namespace in which codex has tools that are in none
SEARCH = "tool_search"
ItemType = Literal["function_call", "custom_tool_call", "tool_search_call"]
_ID_PREFIX: Mapping[ItemType, str] = {"function_call": "fc", "custom_tool_call": "ctc", "tool_search_call": "tsc"}
_FREE_TEXT = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool as its client knows it."""

    name: str
    namespace: str = ""
    called_by: ItemType = "function_call"

    def item(self, call_id: str) -> Json:
        """A call of it that has just begun."""
        kind = self.called_by
        item = {"id": f"{_ID_PREFIX[kind]}_{secrets.token_hex(16)}", "type": kind, "call_id": call_id}
        if kind == "tool_search_call":
            return {**item, "execution": "client", "arguments": {}, "status": "in_progress"}
        named = {"name": self.name, **({"namespace": self.namespace} if self.namespace else {})}
        if kind == "custom_tool_call":
            return {**item, **named, _INPUT: ""}
        return {**item, **named, "arguments": "", "status": "in_progress"}


@dataclass(slots=True)
class ClientTools:
    """The tools of a request: `functions` for the template, and what each is called there."""

    functions: list[Json] = field(default_factory=list)
    by_name: dict[str, ClientTool] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # those of kinds that run on a server
    found: list[str] = field(default_factory=list)  # names, as they are shown, of those that a search has found
    _shown: dict[tuple[str, str], str] = field(default_factory=dict)  # namespace and name -> the name that is shown

    def add(self, tools: Sequence[Body], namespace: str = "") -> list[str]:
        """Read tools; gives the names that the model knows them by. Raises Refusal."""
        names = []
        for tool in tools:
            match tool.text("type", "function"):
                case "function":
                    tool.flag("strict")
                    tool.inner("parameters")
                    fields = ("description", "parameters", "strict")
                    function = {name: tool.values[name] for name in fields if name in tool}
                    names.append(self._add(tool_name(tool), function, namespace))
                case "custom":
                    function = {**_described(tool), "parameters": _FREE_TEXT}
                    names.append(self._add(tool_name(tool), function, namespace, "custom_tool_call"))
                case "namespace":
                    names += self.add(tool.objects("tools"), _told_apart(tool_name(tool)))
                case "tool_search" if tool.text("execution") == "client":
                    function = {**_described(tool), "parameters": tool.inner("parameters").values}
                    names.append(self._add(SEARCH, function, "", "tool_search_call"))
                case kind:
                    self.left_out.append(f"{tool.where} ({kind[:40]})")
        return names

    def add_found(self, tools: Sequence[Body]) -> str:
        """Read tools that a search has found, and describe them; one that is there already is only named. What comes
        before stays as it is, and is not read again. Raises Refusal."""
        known = {*self.by_name}
        names = self.add(tools)
        self.found += [name for name in dict.fromkeys(names) if name not in known]
        functions = {tool["function"]["name"]: tool["function"] for tool in self.functions}
        described = [{"name": name} if name in known else functions[name] for name in names]
        return json.dumps(described, ensure_ascii=False)

    def called(self, name: str) -> ClientTool:
        """The tool that the model knows by a name; one of that name where there is none."""
        return self.by_name.get(name, ClientTool(name))

    def shown(self, name: str, namespace: str) -> str:
        """The name that the model knows a tool by; its own where it is not there any more."""
        return self._shown.get((_told_apart(namespace), name), name)

    def shown_as(self, name: str) -> list[str]:
        """The names that the model knows tools of this name by, in any namespace."""
        return [shown for shown, tool in self.by_name.items() if tool.name == name]

    def _add(self, name: str, function: Json, namespace: str, called_by: ItemType = "function_call") -> str:
        """A tool under its own name, with its namespace where another one has that; gives the name. One that is there
        stays as it is."""
        if known := self._shown.get((namespace, name)):
            return known
        shown = f"{namespace}__{name}" if name in self.by_name and namespace else name
        self._shown[namespace, name] = shown
        self.by_name[shown] = ClientTool(name, namespace, called_by)
        self.functions.append({"type": "function", "function": {"name": shown, **function}})
        return shown


def _told_apart(namespace: str) -> str:
    """A namespace as it tells tools of one name apart; the one of plain tools is none."""
    return "" if namespace == _PLAIN else namespace


def _described(tool: Body) -> Json:
    """The description of a tool, with the grammar of its input, which the model sees nowhere else."""
    form, said = tool.inner("format"), tool.text("description")
    if form.text("type") == "grammar":
        grammar = f"The input is of this {form.text('syntax')} grammar:\n{form.text('definition')}"
        said = f"{said}\n\n{grammar}" if said else grammar
    return {"description": said} if said else {}


def free_input(arguments: str) -> str:
    """The free text among the arguments of a call; all of them where there is none."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    text = given.get(_INPUT) if isinstance(given, Mapping) else None
    return text if isinstance(text, str) else arguments
