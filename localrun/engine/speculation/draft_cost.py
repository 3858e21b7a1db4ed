"""Cost of guesses of a program, learnt from those that were made. No tensors."""

from localrun.engine.speculation.learnt_cost import LearntCost

SMOOTHING = 0.75  # weight of the old value beside a new measurement
PRIOR_PASS = 0.1  # of a step of one row, that a pass is taken to cost until one is measured
LASTING = 512  # steps without a guess, after which passes are taken to cost half: they were measured at a bad time


class DraftCost:
    """Seconds of drafts by their passes, the first of which reads what is new; and of reading more."""

    def __init__(self) -> None:
        self.passes = LearntCost(further=1.0)
        self.entry: float | None = None  # of a text that is read in bulk
        self._n_steps = 0  # since the last measurement

    def observe(self, depth: int, seconds: float) -> None:
        """Record a draft of `depth` passes."""
        self._n_steps = 0
        self.passes.observe(depth, seconds)

    def of(self, depth: int, step: float) -> float:
        """Seconds that a draft of `depth` tokens takes; `step`: those of a step of the model."""
        return self.passes.of(depth) or depth * PRIOR_PASS * step

    def read(self, n: int, seconds: float) -> None:
        """Record that so many entries were read in bulk."""
        self.entry = smoothed(self.entry, seconds / n)

    def reading(self, n: int) -> float:
        """Seconds that so many entries take; 0 until some are measured."""
        return n * (self.entry or 0.0)

    def pass_by(self, n: int) -> None:
        """Count steps without a guess."""
        self._n_steps += n
        if self._n_steps >= LASTING:
            self._n_steps, self.entry = 0, None if self.entry is None else self.entry / 2
            self.passes.halve()


def smoothed(before: float | None, now: float) -> float:
    """The new value of a smoothed measurement."""
    return now if before is None else SMOOTHING * before + (1 - SMOOTHING) * now
