"""Speculation: which tokens are drafted for the sequences of a step, and how well that went. No tensors."""

import time
from collections.abc import Callable, Sequence

from localrun.backends.executor import Executor
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens, Drafter, GuessingProgram
from localrun.engine.step_plan import StepPlan, StepWork

MOST_BEHIND = 6  # tokens that a step computes again beside drafts: without any the next state is one to go on from
MOST_ROWS = 64  # that a step chooses tokens from, drafts included


class Speculation:
    """Drafts for those that decode, each with a drafter of its own, as deep as is worth it.

    An answer is the same as without: a draft is kept only where it is the token that would have been chosen.
    """

    def __init__(
        self,
        ctx: int,
        most_rows: int,
        new_drafter: Callable[[GenerationState], Drafter] | None = None,
        depths: Depths | None = None,
        model: GuessingProgram | None = None,
    ) -> None:
        """`most_rows`: rows of logits that memory was planned for. `new_drafter`: makes one for an answer that begins.
        `model`: a program that drafts, too."""
        self.ctx, self.most_rows = ctx, min(most_rows, MOST_ROWS)
        self.new_drafter, self.depths = new_drafter, depths or Depths()
        self.model = model
        self.drafters: dict[int, Drafter] = {}  # by number of the sequence
        self.starts: list[int] = []  # tokens at which the work of the newest step began

    def propose(self, decoding: Sequence[StepWork]) -> list[tuple[int, ...]]:
        """Drafts for each of those that decode in a step by themselves; none where they are not worth their rows."""
        rows = self.most_rows - len(decoding)
        drafts = [self._draft(work, rows) for work in decoding]
        if self.model is not None:
            drafts = self._guess(self.model, decoding, drafts, rows)
        if not any(draft.tokens for draft in drafts):
            return [()] * len(drafts)
        depths = self.depths.choose(decoding, drafts, rows)
        return [draft.tokens[:depth] for draft, depth in zip(drafts, depths, strict=True)]

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step, whose tokens are not chosen yet."""
        self.starts = [work.sequence.n_computed for work in plan.work]
        self.depths.observe(plan, seconds)

    def follow(self, plan: StepPlan, executor: Executor) -> None:
        """Keep what the next drafts need of the same step, whose tokens are chosen."""
        if self.model is not None and len(self.starts) == len(plan.work):
            beside = executor.beside(plan.n_rows)  # of a model that gives other rows than those after its last norm
            self.model.follow(plan, self.starts, executor.hidden(plan.n_rows) if beside is None else beside)

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
        if self.model is not None:
            self.model.forget(sequence)

    def close(self) -> None:
        """Give the memory of a program back."""
        if self.model is not None:
            self.model.close()

    def _guess(
        self, model: GuessingProgram, decoding: Sequence[StepWork], drafts: list[DraftedTokens], rows: int
    ) -> list[DraftedTokens]:
        """The same drafts, and guesses of a program where it is likelier to be right."""
        wanting = {
            index: self._most(work, rows)
            for index, work in enumerate(decoding)
            if self.depths.prefers_guess(work.sequence, drafts[index])
        }
        wanting = {index: most for index, most in wanting.items() if most > 0}
        sequences = [decoding[index].sequence for index in wanting]
        rows_left = rows - sum(len(draft.tokens) for index, draft in enumerate(drafts) if index not in wanting)
        depth = min(max(wanting.values(), default=0), self.depths.wish(sequences, decoding, rows_left))
        if depth <= 0:
            return drafts
        self._catch_up(model, sequences)
        started = time.perf_counter()
        guesses = model.draft(sequences, depth)
        self.depths.guessed(sequences, depth, time.perf_counter() - started)
        for (index, most), guess in zip(wanting.items(), guesses, strict=True):
            if guess.tokens:
                drafts[index] = guess._replace(tokens=guess.tokens[:most])
        return drafts

    def _catch_up(self, model: GuessingProgram, sequences: Sequence[GenerationState]) -> None:
        """Let a program read what it is behind by: in an answer that is time lost on drafts; a prompt is read once."""
        for sequence in sequences:
            started = time.perf_counter()
            if model.catch_up(sequence):
                self.depths.lose(sequence, time.perf_counter() - started)

    def _most(self, work: StepWork, rows: int) -> int:
        """Tokens that are worth guessing after a sequence."""
        return min(rows, most_drafts(work, self.ctx), self.depths.most(work.sequence))

    def _draft(self, work: StepWork, rows: int) -> DraftedTokens:
        sequence = work.sequence
        most = self._most(work, rows)
        if most <= 0 or self.new_drafter is None:
            return DraftedTokens()
        if sequence.number not in self.drafters:
            self.drafters[sequence.number] = self.new_drafter(sequence)
        draft = self.drafters[sequence.number].draft(sequence.token_ids, most)
        return draft if sequence.images is None else draft.until(sequence.images.token_id)


def most_drafts(work: StepWork, ctx: int) -> int:
    """Most drafts that may all be right, with one more token after them, in what is left of an answer; 0 for work that
    is not the newest token, and at most a few before it that a state took back or that were forced."""
    sequence, cache = work.sequence, work.sequence.cache
    is_decode = work.ends and work.n <= 1 + MOST_BEHIND and not sequence.prefilling and sequence.n_generated > 0
    if not is_decode or cache is None:
        return 0
    if sequence.n_computed < cache.reuse.n_tokens:  # what lies between is replayed
        return 0
    return min(sequence.n_to_come, sequence.n_to_come if sequence.request.rolls else ctx - sequence.n_tokens) - 1
