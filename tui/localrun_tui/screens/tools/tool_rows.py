"""Rows of the tools screen: built-in tools, MCP servers, folders, and what is always allowed. No widgets."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.tools.allowed_tools import AllowedTool
from localrun.tools.mcp.config import ServerEntry, ServerFile, read_servers

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools

RowKind = Literal["built in", "MCP server", "folder", "always"]


@dataclass(frozen=True, slots=True)
class ToolRow:
    """`state` is a word or two, `about` a sentence; `value` is what an action on the row is about."""

    kind: RowKind
    name: str
    state: str
    about: str
    value: str | ServerEntry | Path | AllowedTool


@dataclass(frozen=True, slots=True)
class ToolFiles:
    """Files about tools: the servers, and what is always allowed."""

    servers: ServerFile
    always: tuple[AllowedTool, ...]

    @staticmethod
    def read(tools: "ChatTools") -> "ToolFiles":
        """Read them; an unreadable `mcp.json` is a problem of the servers."""
        try:
            servers = read_servers()
        except UsageError as error:
            servers = ServerFile(problems=(f"{error.message}: {error.hint}",))
        return ToolFiles(servers, tuple(tools.always))


def tool_rows(tools: "ChatTools", files: ToolFiles) -> list[ToolRow]:
    """All rows, as things stand."""
    on = {one.name for one in tools.built_in}
    rows = [
        ToolRow("built in", one.name, "on" if one.name in on else "off", one.description, one.name)
        for one in tools.known
    ]
    rows += [
        ToolRow("MCP server", one.name, _server_state(tools, one), _server_words(tools, one), one)
        for one in files.servers.servers
    ]
    rows += [
        ToolRow("folder", str(one), "is read", "tools may read in it and below, in this chat", one)
        for one in tools.folders.allowed
    ]
    always = "it is not asked about, in any chat"
    return [*rows, *(ToolRow("always", one.name, "is allowed", always, one) for one in files.always)]


def _server_state(tools: "ChatTools", entry: ServerEntry) -> str:
    servers = tools.servers
    if entry.name not in servers.names:
        return "off" if entry.is_on else "disabled"
    if entry.name in servers.waiting_for():
        return "on, starting"
    if servers.problem(entry.name):
        return "on, of no use"
    n_tools = sum(tool.server == entry.name for tool in servers.tools())
    return f"on, {n_tools} tool{'' if n_tools == 1 else 's'}"


def _server_words(tools: "ChatTools", entry: ServerEntry) -> str:
    """Why it is of no use, or else its tools; and what it is."""
    servers = tools.servers
    if entry.name not in servers.names:
        return entry.target
    names = ", ".join(tool.name for tool in servers.tools() if tool.server == entry.name)
    return " · ".join(filter(None, (servers.problem(entry.name) or names, entry.target)))
