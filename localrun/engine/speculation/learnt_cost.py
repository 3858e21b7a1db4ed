"""Cost of steps by their rows, and of drafts by their passes, learnt from those that were run. No tensors."""

SMOOTHING = 0.75  # weight of the old value beside a new measurement
LASTING = 512  # steps after which a measurement counts no more: it may have been a bad one
FORGETTING = 32  # steps between two looks for such
REFRESHING = 4  # steps that an answer to `of` is good for: it takes microseconds, and is asked for by depth


class LearntCost:
    """Seconds by how many rows, or passes, there are."""

    def __init__(self, further: float) -> None:
        """`further`: of the cost of one, that another is taken to cost until it is measured."""
        self.further = further
        self._seconds: dict[int, float] = {}
        self._measured: dict[int, int] = {}  # number of the step that it was measured in last
        self._n_steps = 0
        self._known: dict[float, float] = {}  # answers of `of`

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step, or a draft."""
        self._n_steps += 1
        before = self._seconds.get(rows)
        self._seconds[rows] = seconds if before is None else SMOOTHING * before + (1 - SMOOTHING) * seconds
        self._measured[rows] = self._n_steps
        if before is None or self._n_steps % REFRESHING == 0:
            self._known.clear()
        if self._n_steps % FORGETTING == 0:
            for old in [r for r, step in self._measured.items() if self._n_steps - step > LASTING]:
                del self._seconds[old], self._measured[old]

    def of(self, rows: float) -> float:
        """Seconds that so many rows take; 0 where nothing is known. More never take less."""
        if not self._seconds:
            return 0.0
        if rows not in self._known:
            self._known[rows] = min([self._between(rows), *(s for r, s in self._seconds.items() if r >= rows)])
        return self._known[rows]

    def halve(self) -> None:
        """Take everything to cost half of what was measured."""
        self._seconds = {rows: seconds / 2 for rows, seconds in self._seconds.items()}
        self._known.clear()

    def _between(self, rows: float) -> float:
        """Cost on the line between the nearest measurements, extrapolated beyond the last by what further rows add."""
        below = max((r for r in self._seconds if r <= rows), default=None)
        above = min((r for r in self._seconds if r >= rows), default=None)
        if below is not None and above is not None:
            share = (rows - below) / (above - below) if above > below else 0.0
            return (1 - share) * self._seconds[below] + share * self._seconds[above]
        nearest = below if below is not None else above
        assert nearest is not None
        return self._seconds[nearest] * (1 + self.further * (rows - 1)) / (1 + self.further * (nearest - 1))
