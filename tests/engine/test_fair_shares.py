"""Who goes first, and at what rate each gets on: by class, by what is cached, and nobody waits for ever."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.pretend_engine import Cost, PretendEngine

from localrun.base.request import Priority
from localrun.engine.generation import GenerationState
from localrun.engine.step_cost import LEAST_ROWS
from localrun.engine.waiting_line import AGING_SECONDS, CLASSES
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import MAX_ROWS

COSTS = [Cost(0.009, 0.0008), Cost(0.03, 0.002), Cost(0.1, 0.01), Cost(0.4, 0.02), Cost(0.002, 0.00001)]


def next_in(engine: PretendEngine, coming: list[GenerationState]) -> GenerationState:
    """Whoever of these runs first."""
    while not any(s.admitted for s in coming):
        engine.step()
    return next(s for s in coming if s.admitted)


def test_the_higher_class_goes_first_without_preemption() -> None:
    engine = PretendEngine(100, max_running=1)
    first = engine.add(100, 20, priority="background")
    engine.step()
    coming = [engine.add(50, 1, priority=priority) for priority in reversed(CLASSES)]
    order: list[GenerationState] = []
    while len(order) < 3:
        order.append(next_in(engine, [s for s in coming if s not in order]))
    assert order == coming[::-1]
    assert first.n_generated == 20
    assert not engine.preempted


def test_who_is_raised_goes_first() -> None:
    engine = PretendEngine(100, max_running=1)
    engine.add(100, 20, priority="api")
    engine.step()
    before, raised = engine.add(50, 1, priority="api"), engine.add(50, 1, priority="background")
    engine.scheduler.waiting.raise_class(raised)
    assert next_in(engine, [before, raised]) is raised
    engine.scheduler.waiting.raise_class(before)
    assert next_in(engine, [before]) is before, "one that ran, and others, stay in one line each"


@pytest.mark.parametrize(("priority", "seconds"), [("api", AGING_SECONDS), ("background", 2 * AGING_SECONDS)])
def test_who_waits_rises(priority: Priority, seconds: float) -> None:
    for waited, is_first in ((seconds - 1, False), (seconds, True)):
        engine = PretendEngine(100, max_running=1, cost=Cost(0.01, 0.0001))
        engine.add(100, 20)
        engine.step()
        old = engine.add(50, 1, priority=priority)
        engine.now += waited
        new = engine.add(50, 1)
        assert (next_in(engine, [old, new]) is old) == is_first


def test_among_equals_the_longer_cached_prefix_goes_first() -> None:
    engine = PretendEngine(100, max_running=1)
    known = engine.add(640, 1)
    while known.stop_reason is None:
        engine.step()
    engine.add(64, 30)
    engine.step()
    new, higher = engine.add(700, 1), engine.add(700, 1)
    begun = engine.add(700, 1, start=known.token_ids[:320])
    same = engine.add(700, 1, start=known.token_ids[:640])
    order = [next_in(engine, [new, higher, begun, same])]
    while len(order) < 4:
        order.append(next_in(engine, [s for s in (new, higher, begun, same) if s not in order]))
    assert order == [same, begun, new, higher]


@pytest.mark.parametrize("cost", COSTS)
def test_a_foreign_prompt_beside_a_watched_answer(cost: Cost) -> None:
    """The answer keeps its pace, and the prompt at least a quarter of its own."""
    n_prompt = 32_000
    alone = PretendEngine(600, cost=cost)
    prompt = alone.add(n_prompt, 1, priority="api")
    while prompt.prefilling:
        alone.step()
    rate = n_prompt / alone.now

    engine = PretendEngine(1200, cost=cost)
    own = engine.add(200, 100_000)
    for _ in range(10):
        engine.step()
    prompt, begun, n_before = engine.add(n_prompt, 1, priority="api"), engine.now, len(engine.steps)
    while prompt.prefilling:
        engine.step()
    times = sorted(seconds for seconds, _ in engine.steps[n_before:])
    assert own.stop_reason is None
    assert all(own.number in rows for _, rows in engine.steps[n_before:])
    assert times[int(0.95 * len(times))] <= max(2.5 * cost.decode, cost.decode + LEAST_ROWS * cost.row)
    assert times[-1] <= 4 * cost.decode
    assert n_prompt / (engine.now - begun) >= rate / 4


def test_background_chunks_are_whole_blocks() -> None:
    engine = PretendEngine(600, cost=Cost(0.03, 0.002))
    engine.add(200, 100_000, priority="api")
    for _ in range(10):
        engine.step()
    prompt = engine.add(3000, 1, priority="api")
    while prompt.prefilling:
        engine.step()
        assert prompt.n_computed % BLOCK_TOKENS == 0 or not prompt.prefilling


def test_prompts_of_a_higher_class_are_read_faster_and_all_get_on() -> None:
    engine = PretendEngine(600, cost=Cost(0.01, 0.003))
    engine.add(10, 100_000)  # its decodes leave a few rows
    own, api, low = (engine.add(8_000, 1, priority=priority) for priority in CLASSES)
    for _ in range(400):
        engine.step()
    assert own.n_computed > 2 * api.n_computed > 2 * low.n_computed > 0


def test_a_shared_prefix_inherits_the_highest_waiting_class() -> None:
    shared = random.Random(1).choices(range(97), k=6_400)
    engine = PretendEngine(600, cost=Cost(0.01, 0.003))
    engine.add(10, 100_000)
    low = engine.add(6_500, 1, start=shared, priority="background")
    other = engine.add(6_500, 1, priority="api")
    engine.step()
    own = engine.add(6_500, 1, start=shared)
    while not own.admitted:
        engine.step()
    assert low.n_computed > 2 * other.n_computed
    assert own.figures.n_cached == len(shared)


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 700), st.integers(1, 60), st.sampled_from(CLASSES), st.integers(0, 3)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30, deadline=None)
@given(ARRIVALS, st.integers(14, 80), st.integers(1, 12), st.sampled_from(COSTS), st.integers(0, 9))
def test_every_step_is_fair(
    arrivals: list[tuple[int, int, int, Priority, int]], n_blocks: int, max_running: int, cost: Cost, seed: int
) -> None:
    """All decodes are in every step (vLLM#11067), no step is too large, everybody ends, and no block is lost."""
    engine = PretendEngine(n_blocks, seed=seed, max_running=max_running, cost=cost)
    starts = [random.Random(number).choices(range(97), k=400) for number in range(3)]
    coming, everybody, wait = list(arrivals), list[GenerationState](), 0
    while coming or engine.scheduler.busy:
        while coming and wait >= coming[0][0]:
            _, n_prompt, n_answer, priority, start = coming.pop(0)
            begin = starts[start][: n_prompt - 1] if start < len(starts) else []
            everybody.append(engine.add(n_prompt, n_answer, begin, priority=priority))
            wait = 0
        wait += 1
        plan = engine.scheduler.schedule()
        planned = {s.number for s in (w.sequence for w in plan.work)}
        assert plan.n_rows <= MAX_ROWS
        assert len(engine.scheduler.running) <= max_running
        for sequence in engine.scheduler.running:
            assert sequence.prefilling or sequence.stop_reason or sequence.number in planned, "a decode was left out"
        engine.take(plan)
        assert engine.n_steps < 20_000, "somebody waits for ever"
    assert all(s.stop_reason == "length" for s in everybody)
    engine.store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in engine.store.pools)


def test_low_classes_end_under_a_stream_of_high_ones() -> None:
    engine = PretendEngine(60, max_running=2, cost=Cost(0.1, 0.01))
    low = [engine.add(300, 5, priority=priority) for priority in ("background", "api")]
    for _ in range(3_000):
        if sum(s.request.priority == "interactive" for s in engine.scheduler.waiting) < 4:
            engine.add(100, 20)
        engine.step()
    assert all(s.stop_reason == "length" for s in low)


def test_a_preempted_answer_of_a_low_class_made_room_for_a_high_one() -> None:
    engine = PretendEngine(12, cost=Cost(0.01, 0.001))
    high = engine.add(200, 300)
    low = engine.add(60, 200, priority="api")
    while high.stop_reason is None or low.stop_reason is None:
        engine.step()
    assert engine.preempted[high.number] == 0
