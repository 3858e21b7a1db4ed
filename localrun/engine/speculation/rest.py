"""Rest of drafts: steps that are recorded together. No tensors."""

from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.step_plan import StepWork


class Rest:
    """Steps of some answers that nothing is drafted for: drafts have lost as much as they may."""

    def __init__(self) -> None:
        self.sequences: list[GenerationState] = []
        self.n_left = self.n_done = 0  # steps
        self.is_on = False

    def begin(self, sequences: list[GenerationState], n: int) -> None:
        """`n`: steps until drafts are looked for again."""
        self.sequences, self.n_left, self.n_done, self.is_on = sequences, n, 0, False

    def goes_on(self, decoding: Sequence[StepWork]) -> bool:
        """Whether a step of these is one of them: others begin anew."""
        self.is_on = self.n_left > 0 and [work.sequence for work in decoding] == self.sequences
        if self.is_on:
            self.n_left, self.n_done = self.n_left - 1, self.n_done + 1
        return self.is_on

    def end(self) -> None:
        self.begin([], 0)
