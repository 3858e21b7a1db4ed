"""The tools of a chat, by the names that the model uses."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from localrun.base.request import Json
from localrun.tools.tool import Tool

MAX_NAME = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


class Toolbox:
    """Tools by name: their own, or `server_tool` where names collide or are invalid."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._by_name: dict[str, Tool] = {}
        tools = list(tools)
        alike = Counter(tool.name for tool in tools)
        for tool in sorted(tools, key=lambda tool: bool(tool.server)):  # what is built in keeps its name
            name = f"{tool.server}_{tool.name}" if tool.server and alike[tool.name] > 1 else tool.name
            self._by_name[self._free(_NO_NAME.sub("_", name)[:MAX_NAME] or "tool")] = tool

    def __iter__(self) -> Iterator[tuple[str, Tool]]:
        return iter(self._by_name.items())

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, name: str) -> Tool | None:
        """The tool of this name; None where there is none."""
        return self._by_name.get(name)

    def for_model(self) -> tuple[Json, ...]:
        """The tools, for a request."""
        return tuple(tool.as_function(name) for name, tool in self)

    def _free(self, name: str) -> str:
        free, number = name, 2
        while free in self._by_name:
            free = f"{name[: MAX_NAME - len(str(number)) - 1]}_{number}"
            number += 1
        return free
