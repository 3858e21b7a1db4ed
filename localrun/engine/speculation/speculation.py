"""Speculation: which tokens are drafted for the sequences of a step, and how well that went. No tensors."""

import time
from collections.abc import Callable, Sequence

from localrun.backends.executor import Executor
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import MOST_DEPTH, Depths
from localrun.engine.speculation.drafter import NOTHING, DraftedTokens, Drafter, GuessingProgram
from localrun.engine.speculation.guesses import add_guesses
from localrun.engine.speculation.rest import FIRST, MOST, Rest
from localrun.engine.speculation.streak import Streak
from localrun.engine.step_plan import StepPlan, StepWork, reads_prompt

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
        self.has_ended = False  # a sequence, since the program followed the last step
        self.is_cold = True  # no step has decoded yet: the first one takes a multiple of others
        self.rest, self.streak = Rest(), Streak()
        self.last: Sequence[GenerationState] = ()  # in the last step, where it had no drafts and was recorded by itself
        self.ended = 0.0  # when it was recorded
        self.followed = 0.0  # seconds of following that step
        self.unspent = 0.0  # seconds of drafting that no answer is charged yet

    def propose(self, work: Sequence[StepWork]) -> list[tuple[int, ...]]:
        """Drafts for each of those that decode in a step by themselves, where they are worth their rows; empty: none
        for any, as in a step that is reading prompts."""
        started, rest, streak = time.perf_counter(), self.rest, self.streak
        if streak.sequence is not None:
            streak.is_on = streak.goes_on(work)
            if streak.is_on and (draft := streak.take(self._look(work[0].sequence))):
                self.unspent += time.perf_counter() - started
                return [draft]
            self._end_streak()
        rest.is_on = rest.goes_on(work)
        if rest.is_on:
            if len(rest.steps) == MOST:
                self._end_rest(started)
                self._begin_rest([one.sequence for one in work], 0, started)
            if rest.is_on and not rest.has_glance():
                return []
            started = time.perf_counter()
        elif reads_prompt(work):
            self._end_rest(started)
            self.last = ()
            self._read(work)
            return []
        found = self._find(work)
        if rest.is_on and not found:
            rest.glance(time.perf_counter() - started)
            return []
        return self._draft(work, found, started)

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step, whose tokens are not chosen yet."""
        if self.model is not None:
            self.starts = [work.sequence.n_computed for work in plan.work]
        if self.rest.is_on or self.streak.is_on:
            (self.rest.steps if self.rest.is_on else self.streak.seconds).append(seconds)
            return
        started = time.perf_counter()
        is_cold, self.is_cold = self.is_cold, self.is_cold and reads_prompt(plan.work)
        if is_cold:
            self.last = ()
        else:
            self.depths.observe(plan, seconds)
        self.ended = time.perf_counter()
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
        if self.streak.is_on:
            if n_accepted == len(work.drafts):
                self.streak.n_right += 1
                return
            self._break_streak(work)
        figures.saved_seconds += self.depths.settle(work, n_accepted)

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        if (drafter := self.drafters.pop(sequence.number, None)) is not None:
            drafter.close()
        if sequence is self.streak.sequence:
            self._end_streak()
        self.depths.forget(sequence)
        if self.model is not None:
            self.model.forget(sequence)
            self.has_ended = True

    def close(self) -> None:
        """Give the memory of a program back."""
        if self.model is not None:
            self.model.close()

    def _find(self, work: Sequence[StepWork]) -> list[DraftedTokens]:
        """Look for drafts for each; empty: nothing for any."""
        found: list[DraftedTokens] = []
        for index, one in enumerate(work):
            draft = self._look(one.sequence)
            if draft.tokens and (most := self._most(one, self.most_rows - len(work))) > 0:
                one.sequence.figures.n_searched += 1
                found = found or [NOTHING] * len(work)
                found[index] = draft if len(draft.tokens) <= most else draft._replace(tokens=draft.tokens[:most])
        return found

    def _look(self, sequence: GenerationState) -> DraftedTokens:
        """Look for a draft for an answer, as far as before an image."""
        drafter = self.drafters.get(sequence.number) or self._drafter(sequence)
        if drafter is None or len(sequence.token_ids) == sequence.n_prompt:
            return NOTHING
        draft = drafter.draft(sequence.token_ids, MOST_DEPTH)
        return draft if sequence.images is None else draft.until(sequence.images.token_id)

    def _draft(self, work: Sequence[StepWork], found: list[DraftedTokens], started: float) -> list[tuple[int, ...]]:
        """Draft as much as is worth its rows of what was found, and of what a program guesses; where that is nothing,
        the step is one of a rest."""
        sequences, rows = [one.sequence for one in work], self.most_rows - len(work)
        if self.last == sequences:
            self.depths.wait(started - self.ended - self.followed)
        recorded, model = 0.0, None if self.depths.guesses_rest else self.model
        if model is not None:
            most = [self._most(one, rows) for one in work]
            found, recorded = add_guesses(model, self.depths, work, found or [NOTHING] * len(work), most, rows)
        depths = self.depths.choose(work, found, rows) if found else []
        has_drafts = any(depths)
        if has_drafts or not self.rest.is_on:
            self._end_rest(started)
        if not has_drafts and not self.rest.is_on:
            self._begin_rest(sequences, FIRST, started)
        elif has_drafts and len(work) == 1 and model is None and depths[0] == len(found[0].tokens):
            self.streak.begin(sequences[0], found[0], most_drafts(work[0], self.ctx))
        self.last = () if has_drafts or self.rest.is_on else sequences
        self.unspent += time.perf_counter() - started
        if model is not None:  # guesses are why there is no rest
            self.depths.lose(self.unspent - recorded)
        if has_drafts or model is not None:
            spend(sequences, self.unspent)
            self.unspent = 0.0
        self.followed = 0.0
        return [draft.tokens[:depth] for draft, depth in zip(found, depths, strict=True)] if has_drafts else []

    def _begin_rest(self, sequences: Sequence[GenerationState], first: int, now: float) -> None:
        """Let the next steps of these rest, where it is known how often they may have a glance. `first`: steps that
        have one each; `now`: when the first one begins."""
        is_guessing = self.model is not None and not self.depths.guesses_rest
        every = 0 if is_guessing else self.depths.glances(sequences)
        self.rest.begin(sequences if every else (), every, first, now)
        self.rest.is_on = every > 0

    def _end_rest(self, now: float) -> None:
        """Record the steps of a rest, if there was one, and the time between them where the same answers go on now."""
        rest = self.rest
        if steps := rest.steps:
            self.depths.rested(rest)
            if rest.is_on:
                self.depths.wait((now - rest.started - sum(steps)) / len(steps))
            spend(rest.sequences, self.unspent + rest.glancing)
            self.unspent = 0.0
            rest.steps = []
        rest.sequences, rest.is_on = (), False

    def _end_streak(self) -> None:
        """Record the steps of a streak, if there was one."""
        streak = self.streak
        if streak.sequence is not None and streak.n_right:
            streak.sequence.figures.saved_seconds += self.depths.went_on(streak)
        streak.sequence, streak.is_on, streak.n_right = None, False, 0

    def _break_streak(self, work: StepWork) -> None:
        """Record a streak up to this step, whose draft is not all right, and which is settled like others."""
        draft, seconds = self.streak.drafts.pop(), self.streak.seconds.pop()
        self._end_streak()
        self.depths.went_wrong(work, draft, seconds)

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
        drafter = self.drafters.get(sequence.number)
        if drafter is None and self.new_drafter is not None:
            drafter = self.drafters[sequence.number] = self.new_drafter(sequence)
        return drafter


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
