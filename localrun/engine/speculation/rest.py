"""Steps without drafts, one after the other, that are recorded together. No tensors."""

import time
from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.speculation.drafter import Drafter
from localrun.engine.step_plan import StepWork

MOST = 32  # steps
FIRST = 8  # of these, that have a glance each where they follow a draft: soon after one another is likely


class Rest:
    """Steps of the same answers since one was recorded: most take no more than a glance for drafts, if that."""

    def __init__(self) -> None:
        self.begin([], [], every=0)
        self.is_on = False  # in the step under way

    def begin(self, sequences: Sequence[GenerationState], drafters: Sequence[Drafter | None], every: int) -> None:
        """`every`: steps of which one has a glance; 0: none of these is to rest."""
        self.sequences, self.every = sequences, every
        self.first = 0  # of the steps, that have a glance each
        both = zip(sequences, drafters, strict=True)
        self._glances = [(drafter.may_draft, sequence.token_ids) for sequence, drafter in both if drafter is not None]
        self.steps: list[float] = []  # seconds of each
        self.n_glances, self.glancing = 0, 0.0  # and their seconds

    def passes(self, decoding: Sequence[StepWork]) -> bool:
        """Whether a step of these goes on with it without a glance: nearly all do, and some take half a millisecond."""
        n, every = len(self.steps), self.every
        return every > 0 and n % every > 0 and self.first <= n < MOST and self.goes_on(decoding)

    def goes_on(self, decoding: Sequence[StepWork]) -> bool:
        """Whether a step of these may be the next one."""
        return self.every > 0 and [one.sequence for one in decoding] == self.sequences

    def is_long(self) -> bool:
        """Whether it is time to record it."""
        return len(self.steps) >= MOST

    def may_draft(self) -> bool:
        """Whether a glance tells that there may be a draft."""
        self.n_glances += 1
        started = time.perf_counter()
        found = any(may_draft(token_ids) for may_draft, token_ids in self._glances)
        self.glancing += time.perf_counter() - started
        return found
