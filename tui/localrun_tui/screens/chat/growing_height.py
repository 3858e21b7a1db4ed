"""The height of an answer that grows. A layout takes as long as several drawings, so a fast one gets lines ahead."""

import time


class GrowingHeight:
    """Leave room for the lines that come in `seconds`, at most; a slow answer shows no empty line below it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._height = self._n_lines = 0
        self._when = time.monotonic()

    def height(self, n_lines: int, most: int) -> int:
        """Cells for these lines, with at most `most` to spare."""
        most = most if self.seconds else 0
        if n_lines <= self._height <= n_lines + most:
            return self._height
        now = time.monotonic()
        grown, took = n_lines - self._n_lines if self._height else 0, max(now - self._when, 1e-3)
        self._height = n_lines + min(max(int(self.seconds * grown / took), 0), most)
        self._n_lines, self._when = n_lines, now
        return self._height
