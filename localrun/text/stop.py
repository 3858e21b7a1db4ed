"""Stop strings in a stream of text."""

from collections.abc import Iterable


class StopStrings:
    """Finds the first complete stop string, wherever the stream is cut.

    Text that may still become one is held back. The stop string itself is never emitted, nor is anything after it: it
    is `found`, empty before.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.found = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Take text; returns the text that is safe to emit, and whether a stop string was found."""
        if self.found:
            return "", True
        text = self._held + text
        found = [(start + len(stop), start, stop) for stop in self._stops if (start := text.find(stop)) >= 0]
        if found:
            (_, start, self.found), self._held = min(found), ""
            return text[:start], True
        safe = first_partial(text, self._stops)
        self._held = text[safe:]
        return text[:safe], False

    def flush(self) -> str:
        """Return the text that was held back and is not a stop string."""
        held, self._held = self._held, ""
        return held


def first_partial(text: str, needles: Iterable[str]) -> int:
    """Start of the earliest suffix of `text` that may grow into a needle; len(text) without one."""
    first = len(text)
    for needle in needles:
        start = text.find(needle[0], max(0, len(text) - len(needle) + 1))
        while 0 <= start < first:
            if needle.startswith(text[start:]):
                first = start
                break
            start = text.find(needle[0], start + 1)
    return first
