"""Servers that are added: typed in one line, or taken over from other programs."""

import shlex

from localrun.base.errors import UsageError
from localrun.tools.mcp.config import ServerEntry, typed_server
from localrun.tools.mcp.other_programs import OTHER_PROGRAMS, offers

Offered = dict[str, tuple[str, ServerEntry]]  # by name: whose it is, and the server


def server_typed(line: str) -> ServerEntry:
    """The server of a line such as `files npx -y SERVER ~/notes`, or `issues https://example.org/mcp`. UsageError where
    it is none."""
    try:
        name, *words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"this cannot be read: {error}", "name it first, then give its URL or command") from None
    return typed_server(name, words)


def offered_servers() -> tuple[Offered, str]:
    """Servers of other programs that ours has not, and sentences about those that cannot be taken over."""
    found = offers()
    offered = {entry.name: (offer.source, entry) for offer in reversed(found) for entry in offer.servers}
    problems = [f"{offer.source}: {problem}" for offer in found for problem in offer.problems]
    names = ", ".join(program.title for program in OTHER_PROGRAMS.values())
    return offered, "\n".join(problems) if problems or offered else f"None was found of {names}."
