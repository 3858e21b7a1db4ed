"""Steps without drafts, one after the other, that are recorded together. No tensors."""

from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.step_plan import StepWork

MOST = 32  # steps
FIRST = 8  # of these, that have a glance each where they follow a draft: soon after one another is likely


class Rest:
    """Steps of the same answers since a draft: most take no more than a glance for another, if that."""

    def __init__(self) -> None:
        self.is_on = False  # in the step under way
        self.begin([], 0, 0, 0.0)

    def begin(self, sequences: Sequence[GenerationState], every: int, first: int, started: float) -> None:
        """Begin with the next step. `every`: steps of which one has a glance, after the `first` ones."""
        self.sequences, self.every, self.first, self.started = sequences, every, first, started
        self.steps: list[float] = []  # seconds of each
        self.n_glances, self.glancing = 0, 0.0  # for drafts of which there were none, and their seconds

    def goes_on(self, decoding: Sequence[StepWork]) -> bool:
        """Whether a step of these may be the next one."""
        return [one.sequence for one in decoding] == self.sequences

    def has_glance(self) -> bool:
        """Whether the next step has one: not each does, where it takes long."""
        n = len(self.steps)
        return n < self.first or n % self.every == 0

    def glance(self, seconds: float) -> None:
        """Record a glance that found nothing."""
        self.n_glances, self.glancing = self.n_glances + 1, self.glancing + seconds
