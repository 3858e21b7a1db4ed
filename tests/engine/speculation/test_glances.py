"""Steps after which there is nothing to draft: seen at a glance, and recorded together."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from localrun_testing.small_model import greedy

from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.rest import MOST_GLANCES
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepPlan, StepWork

PROMPT = list(range(100, 140))
NEW = range(1000, 1100)  # tokens that were never there before


class Watched(Lookup):
    """A lookup that notes after how many tokens it was asked for a draft."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = list[int]()

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        self.looks.append(len(token_ids) - len(PROMPT))
        return super().draft(token_ids, most)


class Answer:
    """An answer that is drafted for, step by step; each takes a second, of however many rows."""

    def __init__(self, speculation: Speculation, first: int) -> None:
        self.speculation, self.state = speculation, GenerationState(greedy(PROMPT, 400))
        self.state.cache = cast("SequenceCache", SimpleNamespace(reuse=SimpleNamespace(n_tokens=0)))
        self.state.n_computed = len(PROMPT)
        self.state.append(first, 0.0)

    def go_on(self, token: int) -> tuple[int, ...]:
        """What is drafted for a step, and after it none but this token comes."""
        return go_on([self], (token,))[0]


def go_on(answers: Sequence[Answer], tokens: Sequence[int], seconds: float = 1.0) -> list[tuple[int, ...]]:
    speculation = answers[0].speculation
    work = [StepWork(answer.state, 1) for answer in answers]
    drafts = speculation.propose(work, is_reading=False) or [()] * len(work)
    speculation.observe(StepPlan(tuple(w._replace(drafts=d) for w, d in zip(work, drafts, strict=True))), seconds)
    for answer, token in zip(answers, tokens, strict=True):
        answer.state.append(token, 0.0)
        answer.state.n_computed = answer.state.n_tokens - 1
    return drafts


@pytest.fixture
def lookup() -> Watched:
    return Watched()


@pytest.fixture
def speculation(lookup: Watched) -> Speculation:
    return Speculation(512, 64, lambda _: lookup)


def drafts_of(answer: Answer, tokens: Iterable[int]) -> list[tuple[int, ...]]:
    return [answer.go_on(token) for token in tokens]


def test_where_nothing_is_repeated_one_step_in_nine_is_looked_at_and_measured(
    lookup: Watched, speculation: Speculation
) -> None:
    answer = Answer(speculation, NEW[0])
    assert not any(drafts_of(answer, NEW[1:40]))
    assert lookup.looks == list(range(3, 41, 1 + MOST_GLANCES))  # before a step is measured nothing is
    assert answer.state.figures.n_searched == 37


@pytest.mark.parametrize("n_new", [1, 2, 3, 12])
def test_what_is_repeated_is_drafted_as_soon_as_it_can_be(n_new: int, speculation: Speculation) -> None:
    answer = Answer(speculation, NEW[0])
    assert not any(drafts_of(answer, [*NEW[1:n_new], *PROMPT[5:8]]))
    assert answer.go_on(PROMPT[8])[:1] == (PROMPT[8],)


def test_of_two_answers_each_is_glanced_at(speculation: Speculation) -> None:
    speculation.new_drafter = lambda _: Lookup()
    answers = [Answer(speculation, NEW[0]), Answer(speculation, PROMPT[5])]
    for new, quoted in zip(NEW[1:9], (PROMPT[0], *NEW[9:14], *PROMPT[5:7]), strict=True):
        assert not any(go_on(answers, (new, quoted)))
    assert not any(go_on(answers, (NEW[20], PROMPT[7])))
    first, second = go_on(answers, (NEW[21], PROMPT[8]))
    assert not first
    assert second[:1] == (PROMPT[8],)


def test_steps_that_were_only_glanced_at_pay_for_further_looks(speculation: Speculation) -> None:
    answer = Answer(speculation, NEW[0])
    drafts_of(answer, NEW[1:4])
    record = speculation.depths.records[answer.state.number]
    record.looking = before = -0.02
    drafts_of(answer, NEW[4:60])
    assert record.looking > before + 0.05


def test_the_first_step_after_a_start_tells_no_cost(speculation: Speculation) -> None:
    """It reads what no step has read before."""
    answer = Answer(speculation, NEW[0])
    speculation.observe(StepPlan((StepWork(GenerationState(greedy(PROMPT, 9)), 8),)), 9.0)  # of a prompt
    go_on([answer], (NEW[1],), 3.0)
    go_on([answer], (NEW[2],), 1.0)
    assert speculation.depths.cost.of(1) == 1.0
