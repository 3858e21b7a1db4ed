"""Tools that a person has always allowed: stored in localrun's home, listed, and revoked."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.paths import writable_folder
from localrun.base.request import Json
from localrun.base.state_file import change_state, read_state
from localrun.tools.tool import Tool

_FILE = "allowed-tools.json"


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """One entry. It holds for a tool with the same description as then, and for this `scope`: a folder, a host."""

    server: str
    tool: str
    digest: str
    scope: str = ""
    at: float = 0.0  # Unix time

    @property
    def name(self) -> str:
        """Server, tool and scope, for display."""
        return " ".join(filter(None, (self.server, self.tool, self.scope)))

    def is_for(self, tool: Tool, scope: str) -> bool:
        """Whether the entry holds for a tool as it is now."""
        return (self.server, self.tool, self.digest, self.scope) == (tool.server, tool.name, tool.digest, scope)


class AllowedTools:
    """The entries in a file; none where there is no home. Other programs may change the file meanwhile."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @staticmethod
    def at_home() -> "AllowedTools":
        """The allowed tools of this user."""
        folder = writable_folder("config")
        return AllowedTools(folder / _FILE if folder else None)

    def __iter__(self) -> Iterator[AllowedTool]:
        return iter(_entries(read_state(self._path)))

    def add(self, tool: Tool, scope: str) -> None:
        """Always allow a tool."""
        entry = AllowedTool(tool.server, tool.name, tool.digest, scope, time.time())
        if self._path is not None:
            change_state(self._path, lambda state: _state([*_without(state, entry), entry]))

    def remove(self, entry: AllowedTool) -> None:
        """Revoke an entry."""
        if self._path is not None:
            change_state(self._path, lambda state: _state(_without(state, entry)))


def _entries(state: Json) -> list[AllowedTool]:
    """The valid entries of a file."""
    listed = state.get("allowed")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    names = {field.name for field in fields(AllowedTool)}
    whole = [row for row in rows if row.keys() == names and all(isinstance(row[name], str) for name in names - {"at"})]
    return [AllowedTool(**row) for row in whole]


def _without(state: Json, entry: AllowedTool) -> list[AllowedTool]:
    return [one for one in _entries(state) if (one.digest, one.scope) != (entry.digest, entry.scope)]


def _state(entries: Iterable[AllowedTool]) -> Json:
    return {"allowed": [asdict(entry) for entry in entries]}
