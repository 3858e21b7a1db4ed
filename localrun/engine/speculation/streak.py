"""Steps of one answer whose whole drafts were right, one after the other, that are recorded together. No tensors."""

from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.speculation.drafter import NOTHING, DraftedTokens
from localrun.engine.step_plan import StepWork

MOST = 8  # steps: after these another depth may be better


class Streak:
    """Drafts that follow one which was all right: what each of them tells alone is little, and takes as long to record
    as to find it."""

    def __init__(self) -> None:
        self.sequence: GenerationState | None = None  # None: there is no streak
        self.is_on = False  # in the step under way
        self.first = NOTHING  # the draft before it
        self.depth = self.n_tokens = self.room = self.n_right = 0
        self.drafts: list[DraftedTokens] = []
        self.seconds: list[float] = []  # of their steps

    def begin(self, sequence: GenerationState, draft: DraftedTokens, room: int) -> None:
        """Go on after this draft, all of which is being verified. `room`: most tokens that might be drafted now."""
        self.sequence, self.first, self.depth = sequence, draft, len(draft.tokens)
        self.n_tokens, self.room, self.n_right = sequence.n_tokens, room, 0
        self.drafts, self.seconds = [], []

    def goes_on(self, work: Sequence[StepWork]) -> bool:
        """Whether a step of this work may be the next one: the draft before was all right, and there is room."""
        if len(work) != 1 or (one := work[0]).sequence is not self.sequence:
            return False
        self.n_tokens, self.room = self.n_tokens + 1 + self.depth, self.room - 1 - self.depth
        return (
            one.n == 1
            and len(one.sequence.token_ids) == self.n_tokens == one.sequence.n_computed + 1
            and self.depth <= self.room
            and self.n_right < MOST
        )

    def take(self, draft: DraftedTokens) -> tuple[int, ...]:
        """The tokens to verify of the next draft; none where less speaks for it than for the first one."""
        first = self.first
        if len(draft.tokens) < self.depth or draft.evidence < first.evidence:
            return ()
        if draft.is_fork != first.is_fork or draft.after_edit != first.after_edit:
            return ()
        self.drafts.append(draft)
        return draft.tokens[: self.depth]
