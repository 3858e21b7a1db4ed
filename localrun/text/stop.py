"""Stop strings: text that ends an answer, found even when it comes in pieces."""

from collections.abc import Iterable


class StopStrings:
    """Holds back what may be the beginning of a stop string, and nothing else."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._pending = ""
        self.rest = ""  # what came after the stop string that was met

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop string was met.

        The one that is complete first counts (of those the longest), however the text is cut.
        """
        text = self._pending + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            end, start = min(found)
            self._pending, self.rest = "", text[end:]
            return text[:start], True
        held = max((self._overlap(text, stop) for stop in self._stops), default=0)
        self._pending = text[len(text) - held :]
        return text[: len(text) - held], False

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        text, self._pending = self._pending, ""
        return text

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """The longest end of `text` that is a beginning of `stop`."""
        return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
