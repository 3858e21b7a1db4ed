"""Names of MCP servers for a chat: `mcp:SERVER`, `mcp:SERVER/TOOL`, or `mcp` for all of them."""

from collections.abc import Sequence

from localrun.base.errors import UsageError
from localrun.tools.mcp.config import read_servers
from localrun.tools.mcp.process import check_installed
from localrun.tools.mcp.servers import McpServers

ALL = "mcp"
PREFIX = "mcp:"


def names_servers(name: str) -> bool:
    """Whether a name means servers, not a built-in tool."""
    return name == ALL or name.startswith(PREFIX)


def choose_servers(names: Sequence[str]) -> McpServers:
    """The servers of these names, none of them started. Raises UsageError for one that is not in mcp.json."""
    if not names:
        return McpServers(())
    check_installed()
    file = read_servers()
    only: dict[str, set[str]] = {}
    whole = {entry.name for entry in file.usable} if ALL in names else set()
    for name in names:
        if name == ALL:
            continue
        server, _, tool = name.removeprefix(PREFIX).partition("/")
        entry = file.find(server)
        if not entry.is_on:
            raise UsageError(f"the MCP server {entry.name} is switched off", "change that in mcp.json")
        if tool:
            only.setdefault(entry.name, set()).add(tool)
        else:
            whole.add(entry.name)
    entries = [entry for entry in file.servers if entry.name in whole | only.keys()]
    return McpServers(entries, {name: tools for name, tools in only.items() if name not in whole})
