"""Plan of a step: the tokens that it computes of every sequence, and the rows of logits that come back. No tensors."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from localrun.base.dataclass import dataclass
from localrun.engine.generation import GenerationState
from localrun.ops.largest_step import BESIDE_SPANS


class StepWork(NamedTuple):
    """The next `n` tokens of a sequence, from n_computed on, and `drafts` of those after them, which are verified.

    There are drafts only where `n` is all of the sequence: the logits after each token are those of an answer that
    has come so far.
    """

    sequence: GenerationState
    n: int
    drafts: tuple[int, ...] = ()
    scored: range = range(0)  # positions after which logprobs are wanted, those of drafts included

    @property
    def n_rows(self) -> int:
        return self.n + len(self.drafts)

    @property
    def ends(self) -> bool:
        """Whether the token after the planned ones is to be chosen."""
        return self.n == self.sequence.n_uncomputed


class LogitsRows(NamedTuple):
    """The rows of a step's logits that belong to one StepWork."""

    chosen: range  # adjusted: after the last planned token, and after every draft
    scored: range  # as the model gives them: after each position of `StepWork.scored`


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The work of a step, one piece a sequence. `goes_on`: the step after it may begin before its tokens are known, and
    has its blocks."""

    work: tuple[StepWork, ...]
    goes_on: bool = False

    @property
    def n_rows(self) -> int:
        return sum([work.n + len(work.drafts) for work in self.work])

    def goes_on_with(self, work: Sequence[StepWork]) -> bool:
        """Whether a step of this work is of the same sequences."""
        return [one.sequence for one in self.work] == [one.sequence for one in work]

    def logits_rows(self) -> list[LogitsRows]:
        """Where each piece of work finds its logits: the chosen rows of all come first."""
        rows, n_chosen = [], 0
        n_scored = sum([1 + len(work.drafts) for work in self.work])
        for work in self.work:
            chosen = range(n_chosen, n_chosen + 1 + len(work.drafts))
            scored = range(n_scored, n_scored + len(work.scored))
            rows.append(LogitsRows(chosen, scored))
            n_chosen, n_scored = chosen.stop, scored.stop
        return rows


def reads_prompt(work: Sequence[StepWork]) -> bool:
    """Whether a step of this work computes more of some sequence than its newest tokens."""
    return True in [one.sequence.prefilling for one in work]  # a generator takes twice as long between two steps


def placed(work: Iterable[StepWork]) -> list[StepWork]:
    """Work whose sequence still has its blocks: one that lost them to an older one waits again."""
    return [one for one in work if one.sequence.cache is not None]


def has_place(most: int, running: Sequence[GenerationState], sequence: GenerationState) -> bool:
    """Whether another sequence may run beside those that do: at most `most` at once, and fewer where one has an image
    that a step computes whole."""
    has_spans = any(one.has_spans for one in (sequence, *running))
    return len(running) < (min(most, BESIDE_SPANS) if has_spans else most)


def scorable(sequence: GenerationState, n: int, rows: int) -> int:
    """Most of the next `n` tokens such that logprobs are wanted after no more than `rows` of them."""
    scored = sequence.scored(n)
    return n if len(scored) <= rows else scored.start + rows - sequence.n_computed
