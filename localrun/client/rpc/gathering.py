"""Words of an answer that are sent together. Each sending wakes threads of two processes, on cores that steps use."""

import math


class Gathering:
    """Whether the words of one answer wait for the next: for `gather_ms` at most, and where these come by then."""

    def __init__(self, gather_ms: int) -> None:
        self._seconds = gather_ms / 1000
        self._pace, self._last = math.inf, -math.inf

    def can_wait(self, now: float, oldest: float) -> bool:
        """Whether words that have come `now` can wait for the next, which are expected as much later as these came
        after the last ones. `oldest`: when the first came that wait. The first of an answer do not."""
        self._pace, self._last = now - self._last, now
        return now + self._pace - oldest <= self._seconds

    @property
    def limit(self) -> float:
        """Seconds from one sending to the next where the words that were expected do not come: the first that wait came
        a pace after it."""
        return self._seconds + min(self._pace, self._seconds)
