"""Steps of answers that lookups draft for, one by one."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from localrun_testing.small_model import greedy

from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.looks import COLD, USUAL, Looks
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepPlan, StepWork

PROMPT = list(range(100, 140))
NEW = range(1000, 1100)  # tokens that were never there before


class Answer:
    """An answer that is drafted for, step by step."""

    def __init__(self, speculation: Speculation, first: int) -> None:
        self.speculation, self.state = speculation, GenerationState(greedy(PROMPT, 400))
        self.state.cache = cast("SequenceCache", SimpleNamespace(reuse=SimpleNamespace(n_tokens=0)))
        self.state.n_computed = len(PROMPT)
        self.state.append(first, 0.0)

    def go_on(self, token: int, seconds: float = 1.0) -> tuple[int, ...]:
        """What is drafted for a step, which takes so long, and after it none but this token comes."""
        return go_on([self], (token,), seconds)[0]


def go_on(answers: Sequence[Answer], tokens: Sequence[int], seconds: float = 1.0) -> list[tuple[int, ...]]:
    speculation = answers[0].speculation
    work = [StepWork(answer.state, 1) for answer in answers]
    drafts = speculation.propose(work) or [()] * len(work)
    speculation.observe(StepPlan(tuple(w._replace(drafts=d) for w, d in zip(work, drafts, strict=True))), seconds)
    for answer, token in zip(answers, tokens, strict=True):
        answer.state.append(token, 0.0)
        answer.state.n_computed = answer.state.n_tokens - 1
    return drafts


@pytest.fixture
def speculation() -> Speculation:
    return Speculation(512, 64, lambda _: Lookup())


@pytest.mark.parametrize("n_new", [1, 2, 3, 12])
def test_what_is_repeated_is_drafted_as_soon_as_it_can_be(n_new: int, speculation: Speculation) -> None:
    answer = Answer(speculation, NEW[0])
    assert not any(answer.go_on(token) for token in (*NEW[1:n_new], *PROMPT[5:8]))
    assert answer.go_on(PROMPT[8])[:1] == (PROMPT[8],)


def test_of_two_answers_each_is_looked_for(speculation: Speculation) -> None:
    answers = [Answer(speculation, NEW[0]), Answer(speculation, PROMPT[5])]
    for new, quoted in zip(NEW[1:9], (PROMPT[0], *NEW[9:14], *PROMPT[5:7]), strict=True):
        assert not any(go_on(answers, (new, quoted)))
    assert not any(go_on(answers, (NEW[20], PROMPT[7])))
    first, second = go_on(answers, (NEW[21], PROMPT[8]))
    assert not first
    assert second[:1] == (PROMPT[8],)


def test_the_first_step_after_a_start_tells_no_cost(speculation: Speculation) -> None:
    """It reads what no step has read before."""
    answer = Answer(speculation, NEW[0])
    speculation.observe(StepPlan((StepWork(GenerationState(greedy(PROMPT, 9)), 8),)), 9.0)  # of a prompt
    answer.go_on(NEW[1], 3.0)
    answer.go_on(NEW[2], 1.0)
    assert speculation.depths.cost.of(1) == 1.0


def begun_after_dear_looks(speculation: Speculation, gained: float) -> Answer:
    """An answer whose first step is over, where a look takes as long as a step, and lookups gained this lately."""
    speculation.depths.looks.usual = 1.0
    speculation.depths.looks.ended(gained)
    answer = Answer(speculation, NEW[0])
    for token in NEW[1:3]:  # the very first step of an engine tells no cost
        answer.go_on(token)
    return answer


def test_where_a_look_takes_long_and_gained_nothing_the_first_one_waits(speculation: Speculation) -> None:
    answer = begun_after_dear_looks(speculation, gained=0.0)
    for token in NEW[3:90]:
        answer.go_on(token)
    assert answer.state.figures.n_searched == 0
    assert speculation.depths.records[answer.state.number].gained == 0.0


def test_looks_that_run_code_for_the_first_time_keep_no_answer_from_looking() -> None:
    looks = Looks()
    assert [looks.took(0.004) for _ in range(COLD)] == [USUAL] * COLD
    assert looks.first(0.004) > 0
    assert looks.took(0.0001) == 0.0001


def test_a_cost_that_keeps_answers_from_looking_is_doubted() -> None:
    """Such answers do not measure it again."""
    looks = Looks()
    looks.usual = 0.01
    waits = [looks.first(0.004) for _ in range(40)]
    assert waits[0] < 0 < waits[-1]


def test_where_lookups_gained_it_does_not_wait(speculation: Speculation) -> None:
    answer = begun_after_dear_looks(speculation, gained=0.1)
    answer.go_on(NEW[3])
    assert answer.state.figures.n_searched == 1


def test_what_lookups_gained_in_an_answer_counts_for_the_next_one(speculation: Speculation) -> None:
    answer, depths = begun_after_dear_looks(speculation, gained=-0.1), speculation.depths
    depths.records[answer.state.number].gained = 9.0
    speculation.forget(answer.state)
    assert depths.looks.gained > 0
