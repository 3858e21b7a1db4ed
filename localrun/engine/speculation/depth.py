"""Depth of drafts: as many as are expected to give the most tokens a second, none included. No tensors."""

from collections.abc import Sequence
from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.draft_cost import DraftCost
from localrun.engine.speculation.drafter import HALF_EVIDENCE, DraftedTokens
from localrun.engine.speculation.row_cost import RowCost
from localrun.engine.step_plan import StepPlan, StepWork

MOST_DEPTH = 15
LEAST_GAIN = 1.04  # tokens a second with drafts, in those without: less is not worth a try
PRIOR_WEIGHT = 2.0  # drafts that this counts as
GUESSED = -1  # key of the guesses of a program with the least evidence; others count down from it
USUAL_GUESS = 0.7  # of such guesses are taken to be right until there are some
FADING = 0.9  # of what was seen, with every further draft
SHARE = 0.005  # of the time of steps without drafts, that may be lost on them
FIRST_LOSS = 0.5  # likewise at the start of an answer, in steps
MOST_LOSS = 8.0  # likewise at most, once drafts have gained as much


@dataclass(eq=False, slots=True)
class Record:
    """Success of the drafts for one answer, and the seconds that further ones may lose."""

    purse: float
    right: dict[int, float] = field(default_factory=dict)  # by kind and weight of evidence, lately
    tried: dict[int, float] = field(default_factory=dict)
    key: int = 0  # of the draft that is being verified

    def likelihood(self, draft: DraftedTokens) -> float:
        """How likely a token of a draft is right, those before it being so."""
        key, prior = key_of(draft), draft.evidence / (draft.evidence + HALF_EVIDENCE)
        return (self.right.get(key, 0.0) + PRIOR_WEIGHT * prior) / (self.tried.get(key, 0.0) + PRIOR_WEIGHT)

    @property
    def guess_likelihood(self) -> float:
        """The same of a guess of a program that is not made yet."""
        right, tried = (sum(n for key, n in one.items() if key <= GUESSED) for one in (self.right, self.tried))
        return (right + PRIOR_WEIGHT * USUAL_GUESS) / (tried + PRIOR_WEIGHT)

    def learn(self, n_drafted: int, n_accepted: int) -> None:
        """Record a verified draft: the tokens after a wrong one say nothing."""
        key = self.key
        n_tried = min(n_drafted, n_accepted + 1)
        self.right[key] = FADING * self.right.get(key, 0.0) + n_accepted
        self.tried[key] = FADING * self.tried.get(key, 0.0) + n_tried


def key_of(draft: DraftedTokens) -> int:
    """Key that drafts are counted by: their kind, and the weight of what speaks for them."""
    weight = draft.evidence.bit_length()
    return GUESSED - weight if draft.of_model else weight


class Depths:
    """Weighs the tokens that drafts are expected to give against the measured cost of their rows.

    So that answers without repetition take no longer, drafts may lose no more than a small share of the time of
    steps without them, and what they have gained.
    """

    def __init__(self) -> None:
        self.cost, self.guessing = RowCost(), DraftCost()
        self.records: dict[int, Record] = {}  # by number of the sequence
        self.seconds = self.plain_seconds = 0.0  # of the last step with drafts, and without them
        self.n_drafted = 0  # in it

    def most(self, sequence: GenerationState) -> int:
        """Tokens that are worth looking for."""
        record = self.records.get(sequence.number)
        return MOST_DEPTH if record is not None and record.purse > 0 else 0

    def choose(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens], rows: int) -> list[int]:
        """How many tokens of every draft are verified in one step, `rows` at most."""
        depths = [0] * len(drafts)
        ranked = self._ranked(decoding, drafts)[:rows]
        n_plain = sum(work.n for work in decoding)
        plain = self.cost.of(n_plain) if ranked else 0.0
        if not plain:
            return depths
        purse = min(self.records[decoding[index].sequence.number].purse for _, index in ranked)
        tokens, best, best_speed = float(len(decoding)), 0, LEAST_GAIN * len(decoding) / plain
        for n, (likelihood, _) in enumerate(ranked, 1):
            tokens += likelihood
            seconds = self.cost.of(n_plain + n)
            if seconds - plain > purse:
                break
            if tokens / seconds > best_speed:
                best, best_speed = n, tokens / seconds
        for _, index in ranked[:best]:
            depths[index] += 1
        return depths

    def prefers_guess(self, sequence: GenerationState, draft: DraftedTokens) -> bool:
        """Whether a program is likelier to be right than this draft."""
        record = self.records.get(sequence.number)
        return not draft.tokens or (record is not None and record.guess_likelihood > record.likelihood(draft))

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[StepWork], rows: int) -> int:
        """How many tokens a program should guess after each of these, of all in a step, which has `rows` rows more at
        most; guessing takes its time, too."""
        n_plain, n = sum(work.n for work in decoding), len(sequences)
        plain = self.cost.of(n_plain)
        if not plain or not sequences:  # no step is measured yet
            return 0
        likely = [self.records[one.number].guess_likelihood for one in sequences]
        purse = min(self.records[one.number].purse for one in sequences)
        best, best_speed = 0, LEAST_GAIN * len(decoding) / plain
        for depth in range(1, min(MOST_DEPTH, rows // n) + 1):
            seconds = self.cost.of(n_plain + n * depth) + self.guessing.of(depth, plain)
            if seconds - plain > purse:
                break
            tokens = len(decoding) + sum(chance**ahead for chance in likely for ahead in range(1, depth + 1))
            if tokens / seconds > best_speed:
                best, best_speed = depth, tokens / seconds
        return best

    def guessed(self, sequences: Sequence[GenerationState], depth: int, seconds: float) -> None:
        """Record what guessing has taken, whatever becomes of the guesses."""
        self.guessing.observe(depth, seconds)
        for one in sequences:
            self.lose(one, seconds / len(sequences))

    def lose(self, sequence: GenerationState, seconds: float) -> None:
        """Record time that was taken for the drafts of an answer."""
        self.records[sequence.number].purse -= seconds

    def observe(self, plan: StepPlan, seconds: float) -> None:
        """Record the seconds of a step; those that read prompts, too, say nothing, and have no drafts."""
        if any(work.sequence.prefilling for work in plan.work):
            return
        n_plain = sum(work.n for work in plan.work)
        self.n_drafted = plan.n_rows - n_plain
        self.cost.observe(plan.n_rows, seconds)
        if self.n_drafted:
            self.seconds, self.plain_seconds = seconds, self.cost.of(n_plain)
            return
        for work in plan.work:
            record = self.records.get(work.sequence.number)
            if record is None:
                record = self.records[work.sequence.number] = Record(FIRST_LOSS * seconds)
            record.purse = min(record.purse + SHARE * seconds, MOST_LOSS * seconds)

    def settle(self, work: StepWork, n_accepted: int) -> None:
        """Record how many drafts of the last step an answer went on with."""
        record = self.records[work.sequence.number]
        record.learn(len(work.drafts), n_accepted)
        lost = (self.seconds - self.plain_seconds) * len(work.drafts) / self.n_drafted
        lost += self.cost.of(1 + work.sequence.n_behind) - self.cost.of(1)  # a state takes these back: they come again
        gained = n_accepted * self.plain_seconds
        record.purse = min(record.purse + gained - lost, MOST_LOSS * self.plain_seconds)

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        self.records.pop(sequence.number, None)

    def _ranked(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens]) -> list[tuple[float, int]]:
        """Every drafted token: how likely the answer gets so far, and the number of its draft; the likeliest first."""
        ranked = []
        for index, (work, draft) in enumerate(zip(decoding, drafts, strict=True)):
            if draft.tokens:
                record = self.records[work.sequence.number]
                record.key = key_of(draft)
                likelihood = record.likelihood(draft)
                ranked += [(likelihood**depth, index) for depth in range(1, len(draft.tokens) + 1)]
        return sorted(ranked, key=lambda one: -one[0])
