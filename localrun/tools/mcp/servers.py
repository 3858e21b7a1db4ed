"""The MCP servers of a chat: their tools, known before they start, and calls that start them."""

import threading
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.limits import START_SECONDS, ServerError
from localrun.tools.mcp.listed import keep_list, kept_list
from localrun.tools.mcp.process import McpProcess
from localrun.tools.mcp.variables import expand, server_environment
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

_LOOK_SECONDS = 0.05
_MORE_SECONDS = 5.0  # than the time of a call, which ends it first


@dataclass(slots=True)
class ServerState:
    """A server of a chat: its list, or why it cannot be used; neither before that is known."""

    entry: ServerEntry
    listed: Json | None = None
    problem: str = ""
    is_asked: bool = False

    @property
    def tools(self) -> list[Json]:
        """The listed tools, as plain data."""
        return self.listed["tools"] if self.listed else []

    @property
    def notes(self) -> list[str]:
        """Sentences about tools that are left out."""
        return self.listed["notes"] if self.listed else []


class McpServers:
    """Servers that start when they are first needed: to list unknown tools, or for a call.

    Any thread may ask. A server that dies, or does not answer, ends a call and not the chat. `only` names the wanted
    tools of a server; without an entry all are wanted.
    """

    def __init__(
        self, entries: Iterable[ServerEntry], only: Mapping[str, Collection[str]] = {}, use_kept: bool = True
    ) -> None:
        self._states = {one.name: ServerState(one, kept_list(one) if use_kept else None) for one in entries}
        self._only = only
        self._process = McpProcess(self._changed)
        self._settled = threading.Condition()
        self._told: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._states)

    @property
    def names(self) -> list[str]:
        """Names of the servers."""
        return list(self._states)

    def start(self) -> None:
        """Ask the servers whose tools are unknown, in the background; returns at once."""
        for state in self._states.values():
            if state.listed is None and not state.is_asked:
                state.is_asked = True
                threading.Thread(target=self._list, args=(state,), name="localrun-mcp", daemon=True).start()

    def waiting_for(self) -> list[str]:
        """Names of servers that have not answered yet."""
        return [s.entry.name for s in self._states.values() if s.listed is None and not s.problem]

    def wait(self) -> None:
        """Wait until all have listed their tools, or failed."""
        self.start()
        with self._settled:
            while self.waiting_for():
                self._settled.wait(_LOOK_SECONDS)

    def tools(self) -> list[Tool]:
        """The tools known so far."""
        return [
            self._tool(state, one)
            for name, state in self._states.items()
            for one in state.tools
            if not self._only.get(name) or one["name"] in self._only[name]
        ]

    def problem(self, name: str) -> str:
        """Why a server is of no use; empty where it is, and before that is known."""
        return clean(self._states[name].problem, keep_newlines=False)

    def problems(self) -> list[str]:
        """A sentence about each unusable server, and about tools that are left out or missing."""
        said = []
        for name, state in self._states.items():
            missing = set(self._only.get(name, ())) - {one["name"] for one in state.tools}
            if state.problem:
                said.append(f"the MCP server {name} cannot be used: {state.problem}")
            elif state.listed:
                said += [f"the MCP server {name} has no tool {one}" for one in sorted(missing)]
            said += [f"of the MCP server {name}: {note}" for note in state.notes]
        return [clean(sentence, keep_newlines=False) for sentence in said]

    def news(self) -> list[str]:
        """The problems that were not returned before."""
        fresh = [sentence for sentence in self.problems() if sentence not in self._told]
        self._told.update(fresh)
        return fresh

    def close(self) -> None:
        """End all servers."""
        self._process.close()

    def _tool(self, state: ServerState, listed: Json) -> Tool:
        run = partial(self._call, state, listed)
        return Tool(listed["name"], listed["description"], listed["parameters"], run, server=state.entry.name)

    def _call(self, state: ServerState, listed: Json, arguments: Json, call: RunningCall) -> ToolResult:
        """Call a tool as it was listed; a server whose description of it has changed is not asked."""
        name = state.entry.name
        try:
            server = _as_json(state.entry)
            now = self._process.ask({"do": "list", "server": server}, START_SECONDS, call.check)
            self._note(state, now)
            if listed not in now["tools"]:
                tool = clean(listed["name"], keep_newlines=False)
                raise ToolError(f"the MCP server {name} has changed its tool {tool}: nothing was called")
            question = {"do": "call", "server": server, "tool": listed["name"], "arguments": arguments}
            seconds = call.seconds_left + _MORE_SECONDS
            answer = self._process.ask({**question, "seconds": seconds}, seconds, call.check)
        except (ServerError, UsageError) as error:
            raise ToolError(f"the MCP server {name} did not answer the call: {error}") from None
        return call.result(answer["text"], answer["is_error"], answer["more_bytes"])

    def _list(self, state: ServerState) -> None:
        try:
            self._note(state, self._process.ask({"do": "list", "server": _as_json(state.entry)}, START_SECONDS))
        except (ServerError, UsageError) as error:
            state.problem = str(error)
        with self._settled:
            self._settled.notify_all()

    def _note(self, state: ServerState, listed: Json) -> None:
        found = {"tools": listed["tools"], "notes": listed["notes"]}
        if found != state.listed:
            state.listed = found
            keep_list(state.entry, found)

    def _changed(self, name: str, listed: Json) -> None:
        """Note changed tools of a server: the next turn has them."""
        self._note(self._states[name], listed)


def _as_json(entry: ServerEntry) -> Json:
    """The entry for the process that starts the server, with the values of variables. UsageError for an unset one."""
    full = expand(entry)
    if full.url:
        return {"name": full.name, "url": full.url, "headers": dict(full.headers)}
    environment = server_environment(full)
    return {"name": full.name, "command": full.command, "args": list(full.args), "env": environment, "cwd": full.cwd}
