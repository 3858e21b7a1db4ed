"""Tools of OpenAI's Responses: functions, functions in namespaces, and tools whose input is free text.

A template knows functions only. A tool of free text becomes one with a single argument, and a call of it is told as its
client knows it; so is the namespace that a tool is in.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.server.request.function_tools import tool_name
from localrun.server.request.json_body import Body

_INPUT = "input"
_FREE_TEXT = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool as its client knows it."""

    name: str
    namespace: str = ""
    takes_text: bool = False

    def item(self, id: str, call_id: str) -> Json:
        """A call of it that has just begun."""
        kind, given = ("custom_tool_call", _INPUT) if self.takes_text else ("function_call", "arguments")
        named = {"namespace": self.namespace} if self.namespace else {}
        item = {"id": id, "type": kind, "call_id": call_id, "name": self.name, **named, given: ""}
        return item if self.takes_text else {**item, "status": "in_progress"}


@dataclass(slots=True)
class ClientTools:
    """The tools of a request: `functions` for the template, and what each is called there."""

    functions: list[Json] = field(default_factory=list)
    by_name: dict[str, ClientTool] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # those of kinds that run on a server

    def add(self, tools: Sequence[Body], namespace: str = "") -> None:
        """Read tools. Raises Refusal."""
        for tool in tools:
            match tool.text("type", "function"):
                case "function":
                    tool.flag("strict")
                    tool.inner("parameters")
                    named = ("name", "description", "parameters", "strict")
                    self._add(tool, {name: tool.values[name] for name in named if name in tool}, namespace)
                case "custom":
                    described = {name: tool.values[name] for name in ("name", "description") if name in tool}
                    self._add(tool, {**described, "parameters": _FREE_TEXT}, namespace, takes_text=True)
                case "namespace":
                    self.add(tool.objects("tools"), tool_name(tool))
                case kind:
                    self.left_out.append(f"{tool.where} ({kind[:40]})")

    def called(self, name: str) -> ClientTool:
        """The tool that the model knows by a name; one of that name where there is none."""
        return self.by_name.get(name, ClientTool(name))

    def shown_as(self, name: str) -> list[str]:
        """The names that the model knows tools of this name by, in any namespace."""
        return [shown for shown, tool in self.by_name.items() if tool.name == name]

    def _add(self, tool: Body, function: Json, namespace: str, takes_text: bool = False) -> None:
        """A tool under its own name; with its namespace where another one has that."""
        name = tool_name(tool)
        shown = f"{namespace}__{name}" if name in self.by_name and namespace else name
        self.by_name[shown] = ClientTool(name, namespace, takes_text)
        self.functions.append({"type": "function", "function": {**function, "name": shown}})


def free_input(arguments: str) -> str:
    """The free text among the arguments of a call; all of them where there is none."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    text = given.get(_INPUT) if isinstance(given, Mapping) else None
    return text if isinstance(text, str) else arguments
