"""Loops of ids: noticed exactly where a search through all periods finds one, said once, and ended where asked to."""

import random
from dataclasses import replace

import pytest
from localrun_testing.small_model import finish, greedy, small_engine

from localrun.base.events import Loop
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.handle import NewToken
from localrun.engine.loops import (
    CHECK_TOKENS,
    MAX_PERIOD,
    MIN_SENTENCES,
    MIN_TIMES,
    MIN_TOKENS,
    SENTENCE_TIMES,
    SENTENCE_TOKENS,
    loop_period,
)


def searched_period(ids: list[int]) -> int:
    """The same by trying every period at the shortest end that it could be a loop of: a longer one contains it."""
    for period in range(1, MAX_PERIOD + 1):
        lengths = [max(MIN_TOKENS, MIN_TIMES * period)]
        lengths += [max(MIN_SENTENCES, SENTENCE_TIMES * period)] if period >= SENTENCE_TOKENS else []
        for length in lengths:
            end = ids[-length:]
            repeats = len(end) == length and end[period:] == end[:-period]
            if repeats and shortest_period(end, period) == period:
                return period
    return 0


def shortest_period(ids: list[int], most: int) -> int:
    return next((period for period in range(1, most + 1) if ids[period:] == ids[:-period]), 0)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_period_that_a_search_finds(seed: int) -> None:
    rng = random.Random(seed)
    period = rng.choice([1, 2, 3, 7, 8, 100, 127, 128, 129, 255, 500, 512, 513, 600])
    unit = rng.choices(range(rng.choice([2, 3, 50])), k=period)  # of few ids: many borders that lead nowhere
    times = rng.choice([3.9, 4, 4.1, 6, 19.9, 20])
    least = rng.choice([0, MIN_SENTENCES - 1, MIN_SENTENCES, MIN_TOKENS - 1, MIN_TOKENS])
    looping = (unit * 600)[: max(int(times * period), least)]
    ids = rng.choices(range(9), k=rng.randrange(300)) + looping
    if rng.random() < 0.3:
        ids[-rng.randrange(1, len(looping))] += 1  # one that differs
    assert loop_period(ids) == searched_period(ids)


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [5] * (MIN_TOKENS - 1),
        [n for count in range(700) for n in (7, 1000 + count, 8)],  # a numbered list
        [n for row in range(100) for n in (*[3] * 9, 100 + row)],  # a table
        list(range(600)) * 3,  # the same page three times
        list(range(9)) * 19,  # a line that is to be written nineteen times
        [1, 2, 3, 4] * 60,  # a row of zeros in a table
    ],
)
def test_what_people_ask_for_is_no_loop(ids: list[int]) -> None:
    assert loop_period(ids) == 0


def test_a_sentence_is_a_loop_at_its_twentieth_time() -> None:
    assert loop_period([*range(50, 60), *list(range(8)) * 25]) == 8


@pytest.fixture
def circling(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose answers are 3 random ids, then five ids over and over."""
    ids = [11, 12, 13, *[1, 2, 3, 2, 4] * 1000]
    sample_next = lambda _logits, wanted: [ids[each.sequence.n_generated] for each in wanted]  # noqa: E731
    monkeypatch.setattr("localrun.engine.generations.sample_next", sample_next)
    return small_engine(ctx=1024, n_blocks=17)


def run(engine: Engine, *, stop_on_loop: bool) -> tuple[list[NewToken | Loop], GenerationState]:
    try:
        handle = engine.submit(replace(greedy([5, 6, 7], 900), stop_on_loop=stop_on_loop))
        events = [event for event in handle if isinstance(event, NewToken | Loop)]
        return events, handle.sequence
    finally:
        engine.close()


def test_a_loop_ends_the_answer_where_that_is_asked_for(circling: Engine) -> None:
    events, sequence = run(circling, stop_on_loop=True)
    assert (sequence.stop_reason, sequence.loop_period) == ("loop", 5)
    assert MIN_TOKENS < sequence.n_generated <= MIN_TOKENS + 3 + CHECK_TOKENS
    assert [e for e in events if isinstance(e, Loop)] == [Loop(5)]
    assert events[-1] == Loop(5)


def test_a_loop_is_reported_once_and_generation_goes_on(circling: Engine) -> None:
    events, sequence = run(circling, stop_on_loop=False)
    assert (sequence.stop_reason, sequence.n_generated, sequence.loop_period) == ("length", 900, 5)
    assert [e for e in events if isinstance(e, Loop)] == [Loop(5)]


def test_an_answer_of_other_tokens_has_no_loop() -> None:
    engine = small_engine(ctx=1024, n_blocks=17)
    try:
        assert finish(engine.submit(greedy([5], 100))).loop_period == 0
    finally:
        engine.close()
