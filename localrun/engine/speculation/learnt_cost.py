"""Cost of steps by their rows, and of drafts by their passes, learnt from those that were run. No tensors."""

from collections.abc import Mapping

NEWEST = 0.25  # weight of a new measurement at least: the first ones are averaged, as those after a start take longer
INTERRUPTED = 2.0  # times what is known, that a measurement counts as at most: other work is to blame for the rest
LASTING = 32  # steps after which a measurement counts no more, by how often it was made: it may have been a bad one
MOST_LASTING = 512  # steps, however often
FORGETTING = 32  # steps between two looks for such
MOST_WEIGHT = 4  # of measurements of the same rows, beside those of others: older ones are forgotten
REFRESHING = 4  # steps that an answer to `of` is good for: it takes microseconds, and is asked for by depth


class LearntCost:
    """Seconds by how many rows, or passes, there are."""

    def __init__(self, further: float) -> None:
        """`further`: of the cost of one, that another is taken to cost until it is measured."""
        self.further = further
        self._seconds: dict[int, float] = {}
        self._n: dict[int, int] = {}  # measurements of it
        self._measured: dict[int, int] = {}  # number of the step that it was measured in last
        self._n_steps, self._next_look = 0, FORGETTING
        self._fitted: dict[int, float] = {}  # the seconds such that more rows never take less
        self._known: dict[float, float] = {}  # answers of `of`

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step, or a draft."""
        self.pass_by(1)
        self._n[rows] = n = self._n.get(rows, 0) + 1
        before = self._seconds.get(rows)
        change = 0.0 if before is None else min(seconds, INTERRUPTED * before) - before
        self._seconds[rows] = seconds if before is None else before + max(NEWEST, 1 / n) * change
        self._measured[rows] = self._n_steps
        if before is None or self._n_steps % REFRESHING == 0:
            self._known.clear()

    def pass_by(self, n: int) -> None:
        """Count steps, and forget what was measured too long ago, but for the newest."""
        self._n_steps += n
        if self._n_steps < self._next_look:
            return
        self._next_look, newest = self._n_steps + FORGETTING, max(self._measured.values(), default=0)
        for rows, step in list(self._measured.items()):
            if step < newest and self._n_steps - step > min(MOST_LASTING, LASTING * self._n[rows]):
                del self._seconds[rows], self._measured[rows]
                self._known.clear()

    def is_measured(self, rows: int) -> bool:
        """Whether so many, or fewer, were measured lately: what fewer take cannot be told from more."""
        return min(self._seconds, default=rows + 1) <= rows

    def of(self, rows: float) -> float:
        """Seconds that so many rows take; 0 where nothing is known. More never take less."""
        if not self._seconds:
            return 0.0
        if not self._known:
            self._fitted = never_less(self._seconds, self._n)
        if rows not in self._known:
            self._known[rows] = self._between(rows)
        return self._known[rows]

    def halve(self) -> None:
        """Take everything to cost half of what was measured."""
        self._seconds = {rows: seconds / 2 for rows, seconds in self._seconds.items()}
        self._known.clear()

    def _between(self, rows: float) -> float:
        """Cost on the line between the nearest measurements, extrapolated beyond the last by what further rows add."""
        below = max((r for r in self._fitted if r <= rows), default=None)
        above = min((r for r in self._fitted if r >= rows), default=None)
        if below is not None and above is not None:
            share = (rows - below) / (above - below) if above > below else 0.0
            return (1 - share) * self._fitted[below] + share * self._fitted[above]
        nearest = below if below is not None else above
        assert nearest is not None
        return self._fitted[nearest] * (1 + self.further * (rows - 1)) / (1 + self.further * (nearest - 1))


def never_less(seconds: Mapping[int, float], measured: Mapping[int, int]) -> dict[int, float]:
    """Seconds by rows such that more rows never take less: where some do, all between take the mean of them, by how
    often each was `measured` (isotonic regression)."""
    pools = list[tuple[float, float, list[int]]]()  # weight, mean, rows
    for rows in sorted(seconds):
        weight, mean, members = float(min(measured[rows], MOST_WEIGHT)), seconds[rows], [rows]
        while pools and pools[-1][1] > mean:
            before, mean_before, others = pools.pop()
            mean = (before * mean_before + weight * mean) / (before + weight)
            weight, members = before + weight, others + members
        pools.append((weight, mean, members))
    return {rows: mean for _, mean, members in pools for rows in members}
