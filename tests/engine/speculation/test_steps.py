"""Steps of answers that lookups draft for, one by one."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from localrun_testing.small_model import greedy

from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import FIRST_LOSS, GLANCES, SHARE
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.rest import MOST
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


def test_the_rest_of_an_answer_before_says_nothing_of_the_time_between_steps(
    speculation: Speculation, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = between = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    for _ in range(2):
        answer = Answer(speculation, NEW[0])
        prompt, answer.state.n_computed = StepWork(answer.state, 8), 0
        assert speculation.propose([prompt]) == []
        speculation.observe(StepPlan((prompt,)), 9.0)
        answer.state.n_computed = len(PROMPT)
        for token in NEW[1:12]:
            now += 1.25
            answer.go_on(token, 1.0)
            assert between <= (between := speculation.depths.between)


def test_what_is_quoted_late_is_drafted_however_long_nothing_was_found(speculation: Speculation) -> None:
    """One of a few steps has a glance, whatever the ones before it took."""
    answer, every = Answer(speculation, NEW[0]), 5
    speculation.depths.glance = every * GLANCES
    assert not any(answer.go_on(token) for token in (*NEW[1:90], *PROMPT[5:8]))
    drafts = (answer.go_on(token)[:1] == (token,) for token in PROMPT[8 : 8 + every])
    assert any(drafts)


def test_an_answer_in_which_nothing_is_found_is_looked_for_at_a_glance_only(speculation: Speculation) -> None:
    """Its steps are recorded all the same, so that a bad measurement is forgotten and drafts may lose more again."""
    answer = Answer(speculation, NEW[0])
    for token in NEW[1:90]:
        answer.go_on(token)
    assert answer.state.figures.n_searched <= 1
    assert speculation.depths.records[answer.state.number].purse >= FIRST_LOSS + 2 * MOST * SHARE


@pytest.mark.parametrize("end", ["a draft", "the answer"])
def test_steps_of_a_rest_are_recorded_where_it_ends(
    end: str, speculation: Speculation, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, rested = Answer(speculation, NEW[0]), list[int]()
    monkeypatch.setattr(speculation.depths, "rested", lambda rest: rested.append(len(rest.steps)))
    for token in (*NEW[1:12], *PROMPT[5:8]):  # the first two are measured by themselves
        assert not answer.go_on(token)
    assert rested == []
    if end == "a draft":
        assert answer.go_on(PROMPT[8])
    else:
        speculation.forget(answer.state)
    assert rested == [12]


def test_a_draft_that_ends_a_rest_is_charged_once(speculation: Speculation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts take a second each, and nothing else any time."""
    now, lookup = 0.0, Lookup.draft

    def draft(*args: Any) -> DraftedTokens:
        nonlocal now
        now += 1.0
        return lookup(*args)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(Lookup, "draft", draft)
    answer = Answer(speculation, NEW[0])
    for token in (*NEW[1:12], *PROMPT[5:8]):
        answer.go_on(token)
    assert now == 0.0
    for token in (PROMPT[8], *NEW[20:24]):
        answer.go_on(token)
    assert now >= 1.0
    speculation.forget(answer.state)
    assert answer.state.figures.saved_seconds == -now
