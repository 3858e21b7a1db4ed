"""The tools of one chat: those that the model may call, and their permissions."""

from collections.abc import Callable, Sequence
from pathlib import Path

from localrun.base.request import Json, Request
from localrun.tools.allowed_tools import AllowedTools
from localrun.tools.built_in.registry import built_in_tools, chosen_tools
from localrun.tools.consent import Consent
from localrun.tools.folders import Folders
from localrun.tools.loop import ToolLoop, UnderWay
from localrun.tools.mcp.chosen import ALL, PREFIX, choose_servers, names_servers
from localrun.tools.mcp.servers import McpServers
from localrun.tools.permissions import Permissions
from localrun.tools.running_call import LIMIT
from localrun.tools.tool import Tool
from localrun.tools.toolbox import Toolbox

_SHORTEST_RESULT = 1000  # characters


class ChatTools:
    """Tools of a chat, all off until chosen. Of chosen MCP servers only the tools listed so far count."""

    def __init__(self, consent: Consent, folders: Folders, always: AllowedTools) -> None:
        self.folders = folders
        self.always = always
        self.known: list[Tool] = built_in_tools(folders)
        self.servers = McpServers(())
        self.built_in: list[Tool] = []
        self._of_servers: list[str] = []
        self._permissions = Permissions(consent, folders, always)
        self._given: list[Path] | None = None  # folders that were allowed before the first chat

    def choose(self, names: Sequence[str]) -> None:
        """Let the model call these tools and no others. Raises UsageError for a name that means none."""
        built_in = chosen_tools(self.known, [name for name in names if not names_servers(name)])
        of_servers = [name for name in names if names_servers(name)]
        if of_servers != self._of_servers:
            before, self.servers = self.servers, choose_servers(of_servers)
            self._of_servers = of_servers
            before.close()
            self.servers.start()
        self.built_in = built_in

    @property
    def names(self) -> list[str]:
        """The chosen ones as `choose` takes them."""
        return [*(tool.name for tool in self.built_in), *self._of_servers]

    def switch(self, name: str) -> None:
        """Turn a tool, or a server as `mcp:SERVER`, on or off; the others stay as they are."""
        names = self.names
        if ALL in names:
            names = [*(tool.name for tool in self.built_in), *(f"{PREFIX}{server}" for server in self.servers.names)]
        kept = [one for one in names if one.partition("/")[0] != name]
        self.choose(kept if len(kept) < len(names) else [*names, name])

    def allow(self, name: str) -> None:
        """Let a tool run without a question in this chat."""
        self._permissions.names.add(name)

    def begin_chat(self) -> None:
        """Revoke what the last chat allowed; permissions of the command line stay."""
        self._given = list(self.folders.allowed) if self._given is None else self._given
        self.folders.allowed = list(self._given)
        self._permissions.forget_chat()

    def close(self) -> None:
        """End the servers."""
        self.servers.close()

    def __bool__(self) -> bool:
        return bool(self.built_in or self.servers)

    @property
    def chosen(self) -> list[Tool]:
        """The tools that the model may call now."""
        return [*self.built_in, *self.servers.tools()]

    @property
    def for_model(self) -> tuple[Json, ...]:
        """The chosen tools, for a request."""
        return Toolbox(self.chosen).for_model()

    def answer(self, generate: Callable[[Request], UnderWay], request: Request, ctx: int) -> ToolLoop:
        """An answer that may call the tools.

        `ctx` is the context of the model in tokens, 0 where unknown: one result takes at most about a quarter of it.
        """
        self._permissions.limit = max(_SHORTEST_RESULT, min(LIMIT, ctx or LIMIT // 4))
        return ToolLoop(generate, request, Toolbox(self.chosen), self._permissions)
