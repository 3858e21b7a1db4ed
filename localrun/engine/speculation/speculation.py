"""Speculation: which tokens are drafted for the sequences of a step, and how well that went. No tensors."""

import time
from collections.abc import Callable, Sequence

from localrun.backends.executor import Executor
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens, Drafter, GuessingProgram
from localrun.engine.speculation.rest import FIRST, Rest
from localrun.engine.step_plan import StepPlan, StepWork, reads_prompt

MOST_BEHIND = 6  # tokens that a step computes again beside drafts: without any the next state is one to go on from
NOTHING = DraftedTokens()
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
        self.has_ended = False  # a sequence, since the program followed the last step
        self.is_cold = True  # no step has decoded yet: the first one takes a multiple of others
        self.rest = Rest()
        self.last: StepPlan | None = None  # the last step that was recorded, and when it ended
        self.ended = 0.0
        self.followed = self.recorded = 0.0  # seconds since then: of following, and of drafting that are recorded
        self.unspent = 0.0  # seconds of recording steps, and of looks in vain, that no answer is charged yet

    def propose(self, work: Sequence[StepWork]) -> list[tuple[int, ...]]:
        """Drafts for each of those that decode in a step by themselves, where they are worth their rows; empty: none
        for any, as in a step that is reading prompts."""
        rest = self.rest
        if rest.passes(work):
            rest.is_on = True
            return []
        if rest.is_long() or not rest.goes_on(work):
            rest.is_on = False
            if reads_prompt(work):
                self._read(work)
                return []
            if not self.depths.knows_any(work):
                return []
            self._record(work, time.perf_counter())
        rest.is_on = rest.goes_on(work)
        if rest.is_on and not rest.may_draft():
            return []
        started = time.perf_counter()
        drafts = self._drafts(work)
        if any(drafts):
            if rest.steps:
                self._record(work, started)
                started = self.ended
            rest.is_on, rest.first = False, FIRST
        self.unspent += time.perf_counter() - started
        return drafts

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step, whose tokens are not chosen yet."""
        if self.model is not None:
            self.starts = [work.sequence.n_computed for work in plan.work]
        if self.rest.is_on:
            self.rest.steps.append(seconds)
            return
        started = time.perf_counter()
        is_cold, self.is_cold = self.is_cold, self.is_cold and reads_prompt(plan.work)
        if not is_cold:
            self.depths.observe(plan, seconds)
            self.last, self.ended = plan, time.perf_counter()
            self.unspent += self.ended - started

    def follow(self, plan: StepPlan, executor: Executor) -> None:
        """Keep what the next drafts need of the same step, whose tokens are chosen; nothing while guesses rest."""
        if self.model is None or len(self.starts) != len(plan.work):
            return
        if self.depths.guesses_rest and not self.has_ended:
            return
        started, rows = time.perf_counter(), None
        if not self.depths.guesses_rest:
            rows = executor.beside(plan.n_rows)  # of a model that gives others than those after its last norm
            rows = executor.hidden(plan.n_rows) if rows is None else rows
        self.model.follow(plan, self.starts, rows)
        self.followed, self.has_ended = time.perf_counter() - started, False
        if not reads_prompt(plan.work):
            self.depths.lose(self.followed)
            spend([work.sequence for work in plan.work], self.followed)

    def settle(self, work: StepWork, n_accepted: int) -> None:
        """Record how many drafts an answer went on with."""
        sequence, figures = work.sequence, work.sequence.figures
        if n_accepted:
            n_before = sequence.n_computed + sequence.n_behind - n_accepted - sequence.n_prompt
            figures.right_drafts.append((n_before, n_accepted))
        figures.n_drafted += len(work.drafts)
        figures.n_accepted += n_accepted
        figures.saved_seconds += self.depths.settle(work, n_accepted)

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        if sequence in self.rest.sequences:  # later it would take the time of another answer's step
            spend(self.rest.sequences, self.unspent)
            self.unspent = 0.0
            self._end_rest()
        if (drafter := self.drafters.pop(sequence.number, None)) is not None:
            drafter.close()
        self.depths.forget(sequence)
        if self.model is not None:
            self.model.forget(sequence)
            self.has_ended = True

    def close(self) -> None:
        """Give the memory of a program back."""
        if self.model is not None:
            self.model.close()

    def _record(self, decoding: Sequence[StepWork], started: float) -> None:
        """Record the rest that ends, the time between steps where the last ones were like this, and what drafting took;
        another rest begins."""
        sequences = [work.sequence for work in decoding]
        steps = self.rest.steps if self.rest.sequences == sequences else []  # those of an answer before are over
        self._end_rest()
        if self.last is not None and self.last.goes_on_with(decoding) and (steps or self.last.n_rows == len(decoding)):
            self.depths.wait((started - self.ended - self.followed - sum(steps)) / (1 + len(steps)))
        is_guessing = self.model is not None and not self.depths.guesses_rest
        every = 0 if is_guessing else self.depths.glances(sequences)
        self.rest.begin(sequences, [self._drafter(one) for one in sequences], every)
        self.ended = time.perf_counter()
        seconds = self.ended - started + self.unspent
        if is_guessing:  # these are why there is no rest
            self.depths.lose(seconds - self.recorded)
        spend(sequences, seconds)
        self.followed = self.recorded = self.unspent = 0.0

    def _end_rest(self) -> None:
        """Record the steps of a rest."""
        if self.rest.steps:
            self.depths.rested(self.rest)
            spend(self.rest.sequences, self.rest.glancing)
            self.rest.begin([], [], every=0)

    def _drafts(self, decoding: Sequence[StepWork]) -> list[tuple[int, ...]]:
        rows = self.most_rows - len(decoding)
        most = [self._most(work, rows) for work in decoding]
        for work, n in zip(decoding, most, strict=True):
            work.sequence.figures.n_searched += n > 0
        drafts = [self._draft(work.sequence, n) for work, n in zip(decoding, most, strict=True)]
        if self.model is not None and not self.depths.guesses_rest:
            drafts = self._guess(self.model, decoding, drafts, most, rows)
        if not any(draft.tokens for draft in drafts):
            return []
        depths = self.depths.choose(decoding, drafts, rows)
        return [draft.tokens[:depth] for draft, depth in zip(drafts, depths, strict=True)]

    def _guess(
        self,
        model: GuessingProgram,
        decoding: Sequence[StepWork],
        drafts: list[DraftedTokens],
        most: Sequence[int],
        rows: int,
    ) -> list[DraftedTokens]:
        """The same drafts, and guesses of a program where it is likelier to be right."""
        wanting = [
            index
            for index, work in enumerate(decoding)
            if most[index] > 0 and self.depths.prefers_guess(work.sequence, drafts[index])
        ]
        sequences = [decoding[index].sequence for index in wanting]
        rows_left = rows - sum([len(draft.tokens) for index, draft in enumerate(drafts) if index not in wanting])
        depth = min(
            max([most[index] for index in wanting], default=0), self.depths.wish(sequences, decoding, rows_left)
        )
        if depth <= 0 or not self._is_ready(model, sequences):
            return drafts
        started = time.perf_counter()
        guesses = model.draft(sequences, depth)
        seconds = time.perf_counter() - started
        self.depths.guessed(max(len(guess.tokens) for guess in guesses), seconds)
        self.recorded += seconds
        for index, guess in zip(wanting, guesses, strict=True):
            if guess.tokens:
                drafts[index] = guess._replace(tokens=guess.tokens[: most[index]])
        return drafts

    def _is_ready(self, model: GuessingProgram, sequences: Sequence[GenerationState]) -> bool:
        """Whether a program can draft for one of these, once it has read on where that is worth it: of an answer that
        is time lost on drafts; a prompt is read once."""
        is_ready = False
        for sequence in sequences:
            if n_behind := model.n_behind(sequence):
                if self.depths.worth_reading(sequence, n_behind):
                    self._catch_up(model, sequence, is_answer=sequence.n_generated >= n_behind)
                n_behind = model.n_behind(sequence)
            is_ready = is_ready or not n_behind
        return is_ready

    def _catch_up(self, model: GuessingProgram, sequence: GenerationState, is_answer: bool) -> None:
        started = time.perf_counter()
        n_read = model.catch_up(sequence)
        seconds = time.perf_counter() - started
        if n_read:
            self.depths.guessing.read(n_read, seconds)
        if is_answer:
            self.depths.lose(seconds)
        self.recorded += seconds

    def _most(self, work: StepWork, rows: int) -> int:
        """Tokens that are worth guessing after a sequence."""
        return min(rows, most_drafts(work, self.ctx), self.depths.most(work.sequence))

    def _read(self, work: Sequence[StepWork]) -> None:
        """Let drafters note as much of prompts as a step computes."""
        for one in work:
            sequence = one.sequence
            is_prompt = sequence.prefilling and not sequence.is_warm_up and sequence.n_to_come > 1
            if is_prompt and (drafter := self._drafter(sequence)) is not None:
                drafter.read(sequence.token_ids, one.n)

    def _drafter(self, sequence: GenerationState) -> Drafter | None:
        if self.new_drafter is not None and sequence.number not in self.drafters:
            self.drafters[sequence.number] = self.new_drafter(sequence)
        return self.drafters.get(sequence.number)

    def _draft(self, sequence: GenerationState, most: int) -> DraftedTokens:
        drafter = self._drafter(sequence) if most > 0 else None
        if drafter is None:
            return NOTHING
        draft = drafter.draft(sequence.token_ids, most)
        return draft if sequence.images is None else draft.until(sequence.images.token_id)


def spend(sequences: Sequence[GenerationState], seconds: float) -> None:
    """Count time that was taken for the drafts of some answers."""
    for sequence in sequences:
        sequence.figures.saved_seconds -= seconds / len(sequences)


def most_drafts(work: StepWork, ctx: int) -> int:
    """Most drafts that may all be right, with one more token after them, in what is left of an answer; 0 for work that
    is not the newest token, and at most a few before it that a state took back or that were forced."""
    sequence, cache = work.sequence, work.sequence.cache
    is_decode = work.ends and work.n <= 1 + MOST_BEHIND and not sequence.prefilling and sequence.n_generated > 0
    if not is_decode or cache is None:
        return 0
    if sequence.n_computed < cache.reuse.n_tokens:  # what lies between is replayed
        return 0
    most = sequence.n_to_come if sequence.request.rolls else min(sequence.n_to_come, ctx - sequence.n_tokens)
    return most - 1
