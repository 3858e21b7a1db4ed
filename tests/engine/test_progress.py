"""How far a prompt is, told after each chunk: of what was computed, and soon after it began."""

from collections.abc import Iterator

import pytest
from localrun_testing.small_model import greedy, small_engine

from localrun.base.events import Prefill
from localrun.engine.engine import Engine
from localrun.ops.kv import BLOCK_TOKENS

PROMPT = [(7 * i * i + i) % 90 for i in range(700)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = small_engine(ctx=1024, n_blocks=33)
    yield engine
    engine.close()


def progress(engine: Engine, ids: list[int]) -> tuple[list[Prefill], list[int]]:
    """What is told of reading `ids`, and how many rows had been computed each time."""
    run, rows, told, events = engine.runner.run, 0, [], []

    def counted(plan, *rest):  # type: ignore[no-untyped-def]
        nonlocal rows
        logits = run(plan, *rest)
        rows += plan.n_rows
        return logits

    engine.runner.run = counted  # type: ignore[method-assign]
    tell = engine.generations._tell_progress

    def noted(sequence, done):  # type: ignore[no-untyped-def]
        told.append(rows)
        tell(sequence, done)

    engine.generations._tell_progress = noted  # type: ignore[method-assign]
    try:
        events = [event for event in engine.submit(greedy(ids, 1)) if isinstance(event, Prefill)]
    finally:
        engine.runner.run = run  # type: ignore[method-assign]
        engine.generations._tell_progress = tell  # type: ignore[method-assign]
    return events, told


def test_prefill_progress_is_reported_at_the_start_and_after_the_first_block(engine: Engine) -> None:
    events, rows = progress(engine, PROMPT)
    assert (events[0].done, rows[0]) == (0, 0)
    assert (events[1].done, rows[1]) == (BLOCK_TOKENS, BLOCK_TOKENS)
    assert [event.done - event.cached for event in events] == rows
    assert (events[-1].done, events[-1].total) == (len(PROMPT), len(PROMPT))


def test_what_was_cached_is_no_work_that_tells_a_rate(engine: Engine) -> None:
    progress(engine, PROMPT[:200])
    engine.scheduler.cost.rows_per_second = float(BLOCK_TOKENS)
    events, rows = progress(engine, PROMPT)
    assert events[0].cached >= 192
    assert (events[0].done, rows[0]) == (events[0].cached, 0)
    assert [event.done - event.cached for event in events] == rows
    assert rows[1] <= BLOCK_TOKENS
