"""Waiting for MCP servers before an answer that may call their tools."""

from typing import TYPE_CHECKING

from localrun.base.request import Json
from localrun.cli.console import note
from localrun.cli.session import unless_interrupted

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools


def ready_tools(tools: "ChatTools | None") -> tuple[Json, ...]:
    """The tools of a request, once the MCP servers have listed theirs.

    Problems of servers are noted. Ctrl-C cancels the answer.
    """
    if tools is None:
        return ()
    servers = tools.servers
    servers.start()
    if waiting := servers.waiting_for():
        note(f"(waiting for the MCP {'server' if len(waiting) == 1 else 'servers'} {', '.join(waiting)})")
        unless_interrupted(servers.wait, None)
    for sentence in servers.news():
        note(sentence)
    return tools.for_model
