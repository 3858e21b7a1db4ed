"""Server-sent events: what a server says while it answers."""

from collections.abc import Callable, Iterator

MAX_LINE = 1 << 20


class StreamError(ValueError):
    """The response is no stream of events."""


def read_events(read_line: Callable[[int], bytes]) -> Iterator[str]:
    """The data of every event until the stream ends; `read_line(limit)` gives a line with its end, or less.

    Lines may end in CR LF. Names, ids and comments are passed over. An event that is cut short is not given.
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
            continue
        if data:
            yield "\n".join(data)
        data, size = [], 0
