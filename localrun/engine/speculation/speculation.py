"""Speculation: which tokens are drafted for the sequences of a step, and how well that went. No tensors."""

from collections.abc import Callable, Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens, Drafter
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.step_plan import StepPlan, StepWork

MOST_ROWS = 64  # that a step chooses tokens from, drafts included


class Speculation:
    """Drafts for those that decode, each with a drafter of its own, as deep as is worth it.

    An answer is the same as without: a draft is kept only where it is the token that would have been chosen.
    """

    def __init__(
        self,
        ctx: int,
        most_rows: int,
        new_drafter: Callable[[], Drafter] = Lookup,
        depths: Depths | None = None,
    ) -> None:
        """`most_rows`: rows of logits that memory was planned for."""
        self.ctx, self.most_rows = ctx, min(most_rows, MOST_ROWS)
        self.new_drafter, self.depths = new_drafter, depths or Depths()
        self.drafters: dict[int, Drafter] = {}  # by number of the sequence

    def propose(self, decoding: Sequence[StepWork]) -> list[tuple[int, ...]]:
        """Drafts for each of those that decode in a step by themselves; none where they are not worth their rows."""
        rows = self.most_rows - len(decoding)
        drafts = [self._draft(work, rows) for work in decoding]
        if not any(draft.tokens for draft in drafts):
            return [()] * len(drafts)
        depths = self.depths.choose(decoding, drafts, rows)
        return [draft.tokens[:depth] for draft, depth in zip(drafts, depths, strict=True)]

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step."""
        self.depths.observe(plan, seconds)

    def settle(self, work: StepWork, n_accepted: int) -> None:
        """Record how many drafts an answer went on with."""
        figures = work.sequence.figures
        figures.n_drafted += len(work.drafts)
        figures.n_accepted += n_accepted
        self.depths.settle(work, n_accepted)

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        self.drafters.pop(sequence.number, None)
        self.depths.forget(sequence)

    def _draft(self, work: StepWork, rows: int) -> DraftedTokens:
        sequence = work.sequence
        most = min(rows, most_drafts(work, self.ctx), self.depths.most(sequence))
        if most <= 0:
            return DraftedTokens()
        if sequence.number not in self.drafters:
            self.drafters[sequence.number] = self.new_drafter()
        draft = self.drafters[sequence.number].draft(sequence.token_ids, most)
        return draft if sequence.images is None else draft.until(sequence.images.token_id)


def most_drafts(work: StepWork, ctx: int) -> int:
    """Most drafts that may all be right, with one more token after them, in what is left of an answer; 0 for work that
    is not the newest token alone."""
    sequence, cache = work.sequence, work.sequence.cache
    is_decode = work.ends and work.n == 1 and sequence.n_generated > 0
    if not is_decode or cache is None:
        return 0
    if sequence.n_computed < cache.reuse.n_tokens:  # what lies between is replayed
        return 0
    return min(sequence.n_to_come, sequence.n_to_come if sequence.request.rolls else ctx - sequence.n_tokens) - 1
