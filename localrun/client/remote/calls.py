"""Calls of tools in the chunks of a server, which are cut, numbered and named in many ways."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.events import ToolCall, ToolCallDelta
from localrun.base.request import Json

MAX_CALLS = 1000
MAX_ARGUMENTS = 4 << 20  # characters of one call; the rest is left out, so that it is no JSON


@dataclass(slots=True)
class _Call:
    index: Any  # as the server has it; some number all calls 0, some none
    id: str
    name: str
    arguments: str = ""
    has_ended: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it has ended in arguments that are an object."""
        try:
            return self.has_ended and isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class RemoteCalls:
    """Calls in an answer, from the `tool_calls` of deltas or of a whole message."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def push(self, parts: Any) -> Iterator[ToolCallDelta]:
        """The events of a list of calls, or of parts of them. What is none is passed over."""
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and isinstance(function := part.get("function"), dict):
                yield from self._part(part, function)

    def end(self, is_cut: bool = False) -> Iterator[ToolCallDelta]:
        """The end of the call that is open; a call without arguments has none, unless the answer was cut."""
        if self._calls and not self._calls[-1].has_ended:
            number, call = len(self._calls) - 1, self._calls[-1]
            call.has_ended = True
            if not call.arguments.strip() and not is_cut:
                call.arguments += "{}"
                yield ToolCallDelta(number, call.id, call.name, "{}")
            if call.is_complete:
                yield ToolCallDelta(number, call.id, call.name, "", is_complete=True)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far."""
        return tuple(ToolCall(call.id, call.name, call.arguments, call.is_complete) for call in self._calls)

    def _part(self, part: Json, function: Json) -> Iterator[ToolCallDelta]:
        id, name = _text(part.get("id")), _text(function.get("name"))
        call = self._open(part.get("index"), id, name)
        if call is None and len(self._calls) == MAX_CALLS:
            return
        if call is None:
            yield from self.end()
            call = _Call(part.get("index"), id or f"call_{secrets.token_hex(12)}", name)
            self._calls.append(call)
            yield ToolCallDelta(len(self._calls) - 1, call.id, call.name, "")
        given = function.get("arguments")
        text = json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else _text(given)
        if text and len(call.arguments) + len(text) <= MAX_ARGUMENTS:
            call.arguments += text
            yield ToolCallDelta(len(self._calls) - 1, call.id, call.name, text)

    def _open(self, index: Any, id: str, name: str) -> _Call | None:
        """The call that a part goes on with; None where it begins one."""
        call = self._calls[-1] if self._calls else None
        if call is None or call.has_ended or index != call.index or (id and id != call.id):
            return None
        return None if index is None and name and not id else call


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
