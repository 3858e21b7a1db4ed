"""Drafts that follow one which was all right, beside those that are chosen and recorded one by one."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.small_model import greedy

from localrun.cache.node import common_prefix
from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.generation import GenerationState
from localrun.engine.speculation import streak
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepPlan, StepWork

PROMPT = list(range(100, 140))
ROW = 0.1  # of a step, that a further row takes
PARTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=5)


class AllTokens(Depths):
    """Verifies all tokens of every draft, and counts how often it is asked."""

    n_asked = 0

    def choose(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens], rows: int) -> list[int]:
        self.n_asked += 1
        super().choose(decoding, drafts, rows)
        return [len(draft.tokens) for draft in drafts]


class Played:
    """An answer that is known, in steps that take what their rows do, and nothing between them."""

    def __init__(self, answer: Sequence[int], most: int, room: int = 0) -> None:
        """`most`: steps of a streak. `room`: steps after which none has room for drafts, for once; 0: all have."""
        self.now, self.n_steps = 0.0, 0
        self.depths = AllTokens()
        self.speculation = Speculation(4096, 64, lambda _: Lookup(), self.depths)
        self.state = GenerationState(greedy(PROMPT, len(answer)))
        self.state.cache = cast("SequenceCache", SimpleNamespace(reuse=SimpleNamespace(n_tokens=0)))
        self.state.n_computed = len(PROMPT)
        self.state.append(answer[0], 0.0)
        self.drafts: list[tuple[int, ...]] = []
        with patch.object(time, "perf_counter", lambda: self.now), patch.object(streak, "MOST", most):
            while (n := self.state.n_generated) < len(answer):
                self._step(answer[n:], has_room=self.n_steps != room or not room)
            self.speculation._end_streak()
            self.record = self.depths.records[self.state.number]
            self.speculation.forget(self.state)

    def _step(self, rest: Sequence[int], has_room: bool) -> None:
        work = StepWork(self.state, 1)
        (drafts,) = self.speculation.propose([work]) or [()]
        work = work._replace(drafts=drafts if has_room else ())
        seconds = 1.0 + ROW * len(work.drafts)
        self.now, self.n_steps = self.now + seconds, self.n_steps + 1
        self.speculation.observe(StepPlan((work,)), seconds)
        n_right = common_prefix(work.drafts, rest)
        self.drafts.append(drafts)
        for token in rest[: n_right + 1]:
            self.state.append(token, 0.0)
        self.state.n_computed = self.state.n_tokens - 1
        if work.drafts:
            self.speculation.settle(work, n_right)


@given(PARTS, st.integers(0, 12))
def test_streaks_draft_and_record_what_single_steps_do(parts: list[tuple[int, int, int]], room: int) -> None:
    """Answers quote, change and go on, also where there is no room for a draft."""
    answer = [1000, 1001, 1002]
    for first, n, n_new in parts:
        answer += [*PROMPT[first : first + n], *range(2000 + len(answer), 2000 + len(answer) + n_new)]
    one_by_one, found = Played(answer, 0, room), Played(answer, streak.MOST, room)
    assert found.drafts == one_by_one.drafts
    assert found.record.tried == pytest.approx(one_by_one.record.tried)
    assert found.record.right == pytest.approx(one_by_one.record.right)
    assert found.record.purse == pytest.approx(one_by_one.record.purse, abs=0.02)
    figures, alone = found.state.figures, one_by_one.state.figures
    assert (figures.n_drafted, figures.right_drafts) == (alone.n_drafted, alone.right_drafts)
    assert figures.saved_seconds == pytest.approx(alone.saved_seconds, abs=0.02)


def test_how_deep_is_asked_again_after_a_few_steps() -> None:
    found = Played([1000, *PROMPT * 40], streak.MOST)
    n_drafted = sum(map(bool, found.drafts))
    assert n_drafted > 80
    assert n_drafted / (1 + streak.MOST) <= found.depths.n_asked <= n_drafted / 4
