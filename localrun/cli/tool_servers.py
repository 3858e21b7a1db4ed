"""Waiting for MCP servers before an answer that may call their tools."""

from localrun.cli.console import note
from localrun.cli.session import unless_interrupted
from localrun.tools.mcp.servers import McpServers


def wait_for_servers(servers: McpServers) -> None:
    """Wait until the servers have told their tools, and say what is of no use. Ctrl-C stops the answer."""
    servers.start()
    if waiting := servers.waiting_for():
        note(f"(waiting for the MCP {'server' if len(waiting) == 1 else 'servers'} {', '.join(waiting)})")
        unless_interrupted(servers.wait, None)
    for sentence in servers.news():
        note(sentence)
