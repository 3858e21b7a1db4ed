"""Cost of guesses of a program, learnt from those that were made. No tensors."""

SMOOTHING = 0.75  # weight of the old value beside a new measurement
PRIOR_PASS = 0.1  # of a step of one row, that a pass is taken to cost until one is measured


class DraftCost:
    """Seconds of a draft: of its first pass, which reads what is new, and of each further one."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.further: float | None = None

    def observe(self, depth: int, seconds: float) -> None:
        """Record a draft of `depth` passes."""
        if depth == 1 or self.first is None:
            self.first = smoothed(self.first, seconds / depth)
        if depth > 1:
            self.further = smoothed(self.further, max(0.0, seconds - self.first) / (depth - 1))

    def of(self, depth: int, step: float) -> float:
        """Seconds that a draft of `depth` tokens takes; `step`: those of a step of the model."""
        first = PRIOR_PASS * step if self.first is None else self.first
        return first + (depth - 1) * (first if self.further is None else self.further)


def smoothed(before: float | None, now: float) -> float:
    """The new value of a smoothed measurement."""
    return now if before is None else SMOOTHING * before + (1 - SMOOTHING) * now
