"""Depth of drafts: as many as are expected to give the most tokens a second, none included. No tensors."""

import math
from collections.abc import Sequence
from statistics import median

from localrun.engine.generation import GenerationState
from localrun.engine.speculation.draft_cost import DraftCost, smoothed
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.learnt_cost import INTERRUPTED, LearntCost
from localrun.engine.speculation.record import GUESSED, Record, UsualGuess
from localrun.engine.speculation.rest import MOST as MOST_REST
from localrun.engine.speculation.rest import Rest
from localrun.engine.step_plan import StepPlan, StepWork, reads_prompt

MOST_DEPTH = 15
PRIOR_ROW = 0.06  # of a step of one row, that another is taken to cost until it is measured
LEAST_GAIN = 1.04  # tokens a second with drafts, in those without: less is not worth a try
RISK = 1.5  # times their time, that rows of lookups count until drafts have gained: of prose few are to be rejected
OWN_RISK = 4.0  # likewise of lookups that found their tokens in the answer itself, as those of prose mostly do
SAFE = 6.0  # steps that drafts may lose, from which on rows count as what they take
SHARE = 0.003  # of the time of steps without drafts, that may be lost on them
FIRST_LOSS = 0.5  # likewise at the start of an answer, in steps
TRY = 2.0  # likewise, that guesses of a program may lose from the start on, and then each time they are tried again
GUESS_SHARE = 0.005  # of the time of steps, that they may lose
LEAST_SHARE = GUESS_SHARE / 8  # that is left of it: each try in vain halves it
GLANCES = 0.0007  # likewise, that may be spent on glances for drafts
USUAL_GLANCE = 2e-5  # seconds, that one is thought to take until some are measured
MOST_LOSS = 8.0  # likewise at most, once drafts have gained as much
ANSWER = 128  # tokens that an answer is thought to have left: what a program reads for it has to pay within these


class Depths:
    """Weighs the tokens that drafts are expected to give against the measured cost of their rows.

    So that answers without repetition take no longer, drafts may lose no more than a small share of the time of
    steps without them, and what they have gained.
    """

    def __init__(self) -> None:
        self.cost, self.guessing, self.usual = LearntCost(PRIOR_ROW), DraftCost(), UsualGuess()
        self.glance = USUAL_GLANCE  # seconds, lately
        self.between = 0.0  # seconds from a step to the next: however many tokens a step gives, they pass once
        self.records: dict[int, Record] = {}  # by number of the sequence
        self.guess_purse = 0.0  # seconds that guesses of a program may lose, in all answers
        self.guess_share = GUESS_SHARE
        self.guesses_rest = self.is_begun = False
        self.seconds = self.plain_seconds = 0.0  # that a step like the last one with drafts takes, and without them
        self.n_drafted = 0  # in it
        self.takes_back = False  # a state does, of a step whose drafts are not all right: its tokens are computed again

    def knows_any(self, decoding: Sequence[StepWork]) -> bool:
        """Whether a step of any of these was measured: nothing is worth a draft before."""
        return True in [work.sequence.number in self.records for work in decoding]

    def most(self, sequence: GenerationState) -> int:
        """Tokens that are worth looking for."""
        record = self.records.get(sequence.number)
        return MOST_DEPTH if record is not None and (record.purse > 0 or not self.guesses_rest) else 0

    def choose(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens], rows: int) -> list[int]:
        """How many tokens of every draft are verified in one step, `rows` at most."""
        depths = [0] * len(drafts)
        ranked = self._ranked(decoding, drafts)[:rows]
        n_plain = sum(work.n for work in decoding)
        if not ranked or not self.cost.is_measured(n_plain):
            return depths
        plain = self.cost.of(n_plain)
        looked_up = [
            (self.records[work.sequence.number].purse, 0 < draft.distance <= work.sequence.n_generated)
            for work, draft in zip(decoding, drafts, strict=True)
            if draft.tokens and not draft.of_model
        ]
        purse = min([one for one, _ in looked_up], default=math.inf)
        risk = 1.0 if purse >= SAFE * plain else OWN_RISK if True in [is_own for _, is_own in looked_up] else RISK
        tokens, best, best_speed = float(len(decoding)), 0, LEAST_GAIN * len(decoding) / (plain + self.between)
        most, rows_again = tokens + sum([one for one, _, _ in ranked]), 0.0
        for n, (likelihood, again, _) in enumerate(ranked, 1):
            tokens, rows_again = tokens + likelihood, rows_again + again
            further = self.cost.of(n_plain + n) - plain + self._again(len(decoding), rows_again)
            seconds = plain + risk * further
            if further > purse or most / (seconds + self.between) <= best_speed:  # further rows take no less
                break
            if tokens / (seconds + self.between) > best_speed:
                best, best_speed = n, tokens / (seconds + self.between)
        for _, _, index in ranked[:best]:
            depths[index] += 1
        return depths

    def prefers_guess(self, sequence: GenerationState, draft: DraftedTokens) -> bool:
        """Whether a program is likelier to be right than this draft."""
        record = self.records.get(sequence.number)
        return not draft.tokens or (record is not None and record.guess_likelihood > record.likelihood(draft))

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[StepWork], rows: int) -> int:
        """How many tokens a program should guess after each of these in a step, which has `rows` rows more at most."""
        computed = {work.sequence.number: work.n for work in decoding}
        n_plain = sum(computed.values())
        if not sequences or not self.records or self.guesses_rest or not self.cost.is_measured(n_plain):
            return 0
        likely = [(self.records[one.number].guess_likelihood, computed[one.number]) for one in sequences]
        depth = self.best_guess(likely, len(decoding), n_plain, rows)[0]
        for one in () if depth else sequences:
            self.records[one.number].doubt()
        return depth

    def best_guess(
        self, likely: Sequence[tuple[float, int]], n_answers: int, n_plain: int, rows: int
    ) -> tuple[int, float]:
        """The best depth of guesses, and the tokens a second with it in those without; 0 and 1 where none is worth it,
        or no step is measured yet.

        `likely`: of each answer that is guessed for, how likely a guess is right, and the rows that it computes in any
        case. `n_answers`: in the step, of `n_plain` rows without guesses, and `rows` more at most.
        """
        plain, tokens, n = self.cost.of(n_plain), float(n_answers), len(likely)
        if not plain:
            return 0, 1.0
        speed, all_right, rows_again = tokens / (plain + self.between), [1.0] * n, 0.0
        best, best_speed = 0, LEAST_GAIN * speed
        most = 1 / max(1e-9, 1 - max(chance for chance, _ in likely))  # guesses in a row, the wrong one included
        for depth in range(1, min(MOST_DEPTH, rows // n) + 1):
            for index, (chance, computed) in enumerate(likely):
                rows_again += all_right[index] * (1 - chance) * (computed + depth - 1)
                all_right[index] *= chance
            right = sum(all_right)
            tokens += right
            seconds = self.cost.of(n_plain + n * depth) + self.guessing.of(depth, plain)
            seconds += self._again(n_answers, rows_again)
            if tokens / (seconds + self.between) > best_speed:
                best, best_speed = depth, tokens / (seconds + self.between)
            if (tokens + right * most) / (seconds + self.between) <= best_speed:  # deeper ones take no less
                break
        return best, best_speed / speed if best else 1.0

    def worth_reading(self, sequence: GenerationState, n: int) -> bool:
        """Whether guesses for an answer are likely to gain the time that a program takes to read `n` entries first."""
        gain = self.best_guess([(self.records[sequence.number].guess_likelihood, 1)], 1, 1, MOST_DEPTH)[1]
        saved = (1 - 1 / gain) * (self.cost.of(1) + self.between)
        return saved * min(ANSWER, sequence.n_to_come) > self.guessing.reading(n)

    def guessed(self, n_passes: int, seconds: float) -> None:
        """Record what guessing has taken, whatever becomes of the guesses."""
        if n_passes:
            self.guessing.observe(n_passes, seconds)
        self.lose(seconds)

    def lose(self, seconds: float) -> None:
        """Record time that was taken for guesses."""
        if self.is_begun:
            self._allow_guesses(-seconds, self.cost.of(1))

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step; those that read prompts, too, say nothing, and have no drafts."""
        if reads_prompt(plan.work):
            return
        n_plain = sum(work.n for work in plan.work)
        self.n_drafted = plan.n_rows - n_plain
        if self.cost.is_measured(plan.n_rows) and False in [w.sequence.number in self.records for w in plan.work]:
            self.cost.pass_by(1)  # the first step of an answer takes longer than others
        else:
            self.cost.observe(plan.n_rows, seconds)
        if self.n_drafted:  # as learnt: what else interrupts a step is no loss of its drafts
            self.seconds, self.plain_seconds = self.cost.of(plan.n_rows), self.cost.of(n_plain)
            return
        for work in plan.work:
            record = self.records.get(work.sequence.number)
            if record is None:
                self.guess_purse = self.guess_purse if self.is_begun else TRY * seconds
                self.is_begun = True
                record = self.records[work.sequence.number] = Record(FIRST_LOSS * seconds, self.usual)
            self._allow(record, SHARE * seconds, seconds)
            self._allow_guesses(self.guess_share * seconds / len(plan.work), seconds)
        self.guessing.pass_by(1)

    def wait(self, seconds: float) -> None:
        """Record the time between two steps."""
        self.between = smoothed(self.between, min(seconds, self.cost.of(1)))

    def glances(self, sequences: Sequence[GenerationState]) -> int:
        """Steps of which one may have a glance for drafts, while there are none; 0 where that is not known yet."""
        records = [self.records[one.number] for one in sequences if one.number in self.records]
        if len(records) < len(sequences) or not (step := self.cost.of(len(sequences))):
            return 0
        if all(record.purse <= 0 for record in records):
            return MOST_REST
        return math.ceil(len(sequences) * self.glance / (GLANCES * step))

    def rested(self, rest: Rest) -> None:
        """Record steps without drafts for some answers."""
        n = len(rest.steps)
        self.cost.observe(len(rest.sequences), median(rest.steps))
        self.cost.pass_by(n - 1)
        step = self.cost.of(len(rest.sequences))
        if rest.n_glances:
            glance = rest.glancing / (rest.n_glances * len(rest.sequences))
            self.glance = smoothed(self.glance, min(glance, INTERRUPTED * self.glance))
        for one in rest.sequences:
            if record := self.records.get(one.number):
                self._allow(record, n * SHARE * step, step)
        self._allow_guesses(n * self.guess_share * step, step)
        self.guessing.pass_by(n)

    def settle(self, work: StepWork, n_accepted: int) -> float:
        """Record how many drafts of the last step an answer went on with -> seconds that they gained it."""
        record = self.records[work.sequence.number]
        record.learn(len(work.drafts), n_accepted)
        lost = (self.seconds - self.plain_seconds) * len(work.drafts) / self.n_drafted
        self.takes_back = self.takes_back or work.sequence.n_behind > 0
        lost += self._again(1, work.sequence.n_behind)
        gain, is_guess = n_accepted * (self.plain_seconds + self.between) - lost, record.key <= GUESSED
        self._allow(record, 0.0 if is_guess else gain, self.plain_seconds)
        self._allow_guesses(gain if is_guess else 0.0, self.plain_seconds)
        return gain

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        if self.records.pop(sequence.number, None) is not None:
            self.usual.fade()

    def _allow_guesses(self, seconds: float, step: float) -> None:
        """Let guesses lose so much more, or less; once they have lost all, they rest until a try can be afforded, which
        takes longer each time, until some gain."""
        self.guess_purse = min(self.guess_purse + seconds, MOST_LOSS * step)
        if self.guess_purse < 0:
            self.guesses_rest = True
        elif self.guesses_rest and self.guess_purse >= TRY * step:
            self.guesses_rest, self.guess_share = False, max(LEAST_SHARE, self.guess_share / 2)
        elif self.guess_purse == MOST_LOSS * step:
            self.guess_share = GUESS_SHARE

    def _allow(self, record: Record, seconds: float, step: float) -> None:
        """Let an answer lose so many seconds more, or less."""
        record.purse = min(record.purse + seconds, MOST_LOSS * step)

    def _again(self, n_answers: int, rows: float) -> float:
        """Seconds that the next step takes longer where it computes so many rows again, on the average."""
        if not self.takes_back:
            return 0.0
        quarters = round(4 * rows)  # of a row: what few counts cost is known sooner
        return self.cost.of(n_answers + quarters / 4) - self.cost.of(n_answers)

    def _ranked(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens]) -> list[tuple[float, float, int]]:
        """Every drafted token, the likeliest first: how likely the answer gets so far, rows that are computed again
        should it stop there, by how likely that is, and the number of its draft."""
        ranked = []
        for index, (work, draft) in enumerate(zip(decoding, drafts, strict=True)):
            if draft.tokens:
                so_far = 1.0  # all of it is right
                for n, likelihood in enumerate(self.records[work.sequence.number].verify(draft)):
                    rows_again = so_far * (1 - likelihood) * (work.n + n)
                    so_far *= likelihood
                    ranked.append((so_far, rows_again, index))
        return sorted(ranked, key=lambda one: -one[0])
