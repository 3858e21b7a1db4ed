"""Server-sent events, and fields of their JSON: a server may send anything, so every value is checked."""

from collections.abc import Callable, Iterator
from typing import Any

from localrun.base.request import Json

MAX_LINE = 1 << 20


class StreamError(ValueError):
    """The response is not a stream of events."""


def read_events(
    read_line: Callable[[int], bytes], take_comment: Callable[[str], None] = lambda text: None
) -> Iterator[str]:
    """The data of every event until the stream ends; `read_line(limit)` gives a line with its end, or less.

    Lines may end in CR LF. Names and ids are passed over, `take_comment` gets the text of comments. An event that is
    cut short is not given.
    """
    data: list[str] = []
    size = 0
    first = True
    while line := read_line(MAX_LINE + 1):
        size += len(line)
        if size > MAX_LINE:
            raise StreamError(f"an event has more than {MAX_LINE:,} bytes")
        if not line.endswith(b"\n"):
            return
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if first:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            name, _, value = text.partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif not name:
                take_comment(value)
            continue
        if data:
            yield "\n".join(data)
        data, size = [], 0


def first_of(values: Any) -> Json:
    """The first object of a list; an empty one where there is none."""
    return values[0] if isinstance(values, list) and values and isinstance(values[0], dict) else {}


def text_of(value: Any) -> str:
    """A text, be it whole or a list of parts; empty for any other value."""
    if isinstance(value, list):
        return "".join(text_of(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def count_or_none(values: Any, name: str) -> int | None:
    """A number of tokens; None where the field is missing."""
    return count_of(values, name) if isinstance(values, dict) and name in values else None


def count_of(values: Any, name: str) -> int:
    """A number of tokens; 0 for a value that is not one."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0


def number_of(values: Json, *names: str) -> float:
    """The first of these fields that is a number from 0 on; 0 where none is."""
    found = (values.get(name) for name in names)
    return next((float(n) for n in found if isinstance(n, int | float) and 0 <= n < 1e15), 0.0)
