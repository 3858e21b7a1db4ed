"""Rest of drafts: steps that are recorded together. No tensors."""

from collections.abc import Callable, Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.step_plan import StepWork

MOST_GLANCES = 8  # steps in a row without anything to draft, before the next one is measured


class Rest:
    """Steps of some answers that nothing is drafted for, and that are recorded together: drafts have lost as much as
    they may, or there is nothing to draft."""

    def __init__(self) -> None:
        self.sequences: list[GenerationState] = []
        self.n_left = self.n_done = 0  # steps
        self.glances = 0  # that may be taken after these
        self.is_on = False

    def begin(self, sequences: list[GenerationState], n: int, is_measured: bool) -> None:
        """`n`: steps until drafts are looked for again. `is_measured`: a step of each was."""
        self.sequences, self.n_left, self.n_done, self.is_on = sequences, n, 0, False
        self.glances = MOST_GLANCES if is_measured else 0

    def goes_on(self, decoding: Sequence[StepWork], finds_nothing: Callable[[], bool]) -> bool:
        """Whether a step of these is one of them: others begin anew."""
        self.is_on = False
        if [work.sequence for work in decoding] == self.sequences:
            if self.n_left:
                self.n_left, self.is_on = self.n_left - 1, True
            elif self.glances and finds_nothing():
                self.glances, self.is_on = self.glances - 1, True
        self.n_done += self.is_on
        return self.is_on

    def end(self) -> None:
        self.begin([], 0, is_measured=False)
