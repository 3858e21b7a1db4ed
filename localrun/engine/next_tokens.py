"""Choose the next tokens of sequences from the logits of a step."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from localrun.base.errors import ModelFileError
from localrun.engine.generation import GenerationState
from localrun.engine.philox import uniforms
from localrun.engine.step_plan import StepWork
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw


class EndedWork(NamedTuple):
    """Work after which tokens are chosen from `rows` of logits: after the planned tokens, and after each draft.

    `raw_rows`: the same as the model gives them, where logprobs are wanted.
    """

    work: StepWork
    rows: Sequence[int]
    raw_rows: Sequence[int]

    @property
    def is_stepwise(self) -> bool:
        """Whether a token decides which ones may come after the next: rows are then looked at one after the other."""
        return bool(self.work.drafts) and self.work.sequence.constraint is not None


class NextRow(NamedTuple):
    """A row of logits, and whose next token is chosen from it, once `ahead` drafted tokens have been answered."""

    row: int
    sequence: GenerationState
    ahead: int = 0


def next_rows(ended: Iterable[EndedWork]) -> list[NextRow]:
    """The rows of all, one sequence after the other."""
    return [NextRow(row, one.work.sequence, ahead) for one in ended for ahead, row in enumerate(one.rows)]


def sample_next(logits: Logits, wanted: Sequence[NextRow]) -> list[int]:
    """The token after each row, chosen by the settings of its sequence; neighbours change nothing."""
    tokens: dict[int, int] = {}  # by row
    for each in wanted:
        constraint = each.sequence.constraint
        if constraint is not None and constraint.restricts:
            tokens[each.row] = constraint.choose(logits, *draws_of([each]))
        elif each.sequence.request.settings.temperature <= 0:
            tokens[each.row] = int(logits.argmax[each.row])
    if sampled := [each for each in wanted if each.row not in tokens]:
        tokens |= zip([each.row for each in sampled], logits.choose(draws_of(sampled)), strict=True)
    return [tokens[each.row] for each in wanted]


def draws_of(sampled: Sequence[NextRow]) -> list[Draw]:
    """How the token after each row is drawn: its random number belongs to the seed and the position."""
    positions = [each.sequence.n_tokens + each.ahead for each in sampled]
    numbers = uniforms([each.sequence.request.seed for each in sampled], positions)
    draws = []
    for each, u in zip(sampled, numbers, strict=True):
        chain = each.sequence.request.settings
        draws.append(Draw(each.row, chain.top_k, chain.temperature, chain.top_p, chain.min_p, u))
    return draws


def not_finite() -> ModelFileError:
    """The error of logits that decide nothing."""
    return ModelFileError("NONFINITE", "the model computed values that are not numbers", path="")
