"""Calls of tools in the answer of a server, put together from the pieces that it sends."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from localrun.base.events import ToolCall, ToolCallDelta

MAX_CALLS = 1000
MAX_ARGUMENTS = 4 << 20  # characters of one call; what follows is left out, so that it is no JSON


@dataclass(slots=True)
class _Begun:
    """A call so far."""

    id: str
    name: str
    parts: list[str] = field(default_factory=list)
    n_characters: int = 0


class RemoteCalls:
    """Takes the `tool_calls` of each piece; a call ends where another begins, or the answer does."""

    def __init__(self) -> None:
        self._calls: list[_Begun] = []
        self._places: dict[int, int] = {}  # index of a server -> of `_calls`
        self._is_over = False

    def push(self, deltas: object) -> Iterator[ToolCallDelta]:
        """The events of one piece."""
        for delta in deltas if isinstance(deltas, list) else ():
            function = delta.get("function") if isinstance(delta, dict) else None
            if not isinstance(function, dict):
                continue
            index, name, id = delta.get("index"), function.get("name"), delta.get("id")
            place = self._places.get(index) if isinstance(index, int) else None
            if place is None and isinstance(name, str) and name and len(self._calls) < MAX_CALLS:
                yield from self._end_last()
                place = len(self._calls)
                self._calls.append(_Begun(id if isinstance(id, str) and id else f"call_{place}", name))
                if isinstance(index, int):
                    self._places[index] = place
                yield ToolCallDelta(place, self._calls[place].id, name, "")
            place = len(self._calls) - 1 if place is None else place
            arguments = function.get("arguments")
            text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
            if place == len(self._calls) - 1 >= 0 and isinstance(text, str) and text:
                yield from self._more(place, text)

    def finish(self) -> Iterator[ToolCallDelta]:
        """The end of an answer that is whole."""
        yield from self._end_last()
        self._is_over = True

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All calls; the last one is not complete where the answer broke off in it."""
        last = len(self._calls) - 1
        return tuple(
            ToolCall(call.id, call.name, "".join(call.parts), number < last or self._is_over)
            for number, call in enumerate(self._calls)
        )

    def _more(self, place: int, text: str) -> Iterator[ToolCallDelta]:
        call = self._calls[place]
        call.n_characters += len(text)
        if call.n_characters <= MAX_ARGUMENTS:
            call.parts.append(text)
            yield ToolCallDelta(place, call.id, call.name, text)

    def _end_last(self) -> Iterator[ToolCallDelta]:
        if self._calls and not self._is_over:
            yield ToolCallDelta(len(self._calls) - 1, self._calls[-1].id, self._calls[-1].name, "", is_complete=True)
