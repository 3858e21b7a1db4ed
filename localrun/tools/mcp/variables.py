"""`${VARIABLES}` in the entries of MCP servers, and the environment that servers start in."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from localrun.base.errors import UsageError
from localrun.tools.environment import minimal_environment
from localrun.tools.mcp.config import ServerEntry

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HOME = "userHome"  # as Cursor and VS Code call it


def expand(entry: ServerEntry, environment: Mapping[str, str] = os.environ) -> ServerEntry:
    """The entry with the values of `${NAME}`, `${env:NAME}`, `${NAME:-otherwise}` and `${userHome}`.

    UsageError for a variable that is not set.
    """

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if name == _HOME:
            return str(Path.home())
        if not environment.get(name) and otherwise is not None:
            return otherwise
        if name not in environment:
            raise UsageError(f"it needs the variable {name}, which is not set", f"set {name}, or write its value")
        return environment[name]

    def text(written: str) -> str:
        return _VARIABLE.sub(value, written)

    def texts(written: Mapping[str, str]) -> dict[str, str]:
        return {name: text(one) for name, one in written.items()}

    return replace(
        entry,
        command=text(entry.command),
        args=tuple(map(text, entry.args)),
        env=texts(entry.env),
        cwd=text(entry.cwd),
        url=text(entry.url),
        headers=texts(entry.headers),
    )


def server_environment(entry: ServerEntry, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a server: what every program needs, and `env` of its entry."""
    return {**minimal_environment(environment), **entry.env}
