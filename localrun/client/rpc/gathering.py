"""Words of an answer that are sent together. Each sending wakes threads of two processes, on cores that steps use."""

import math


class Gathering:
    """How long the words of one answer wait for the next: for `gather_ms` at most, and only where these come by then.

    They go once the time is over rather than with the last that come in it: right after a step the engine prepares the
    next, and would wait for whoever sends.
    """

    def __init__(self, gather_ms: int) -> None:
        self._seconds = gather_ms / 1000
        self._pace, self._last = math.inf, -math.inf  # seconds between words, and when there were some

    def can_wait(self, now: float) -> bool:
        """Whether words that have come `now` wait for the next, which are expected as much later as these came after
        the last ones. The first of an answer do not."""
        self._pace, self._last = now - self._last, now
        return self._pace <= self._seconds

    def time_left(self, now: float) -> float:
        """Seconds until words that are yet to come will have waited for as long as they may. They are expected a pace
        after the last ones, or at once where these took longer than words may wait."""
        pace = self._pace if self._pace <= self._seconds else 0.0
        return max(0.0, self._last + pace - now) + self._seconds
