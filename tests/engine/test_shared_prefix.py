"""Prompts that begin alike and come together: what they share is computed once, whoever of them ends meanwhile."""

import random
from collections.abc import Iterator

import pytest
from localrun_testing.cache_engine import GEMMA, GRANITE_H, HYBRID, LFM, LLAMA, MISTRAL, CacheCase
from localrun_testing.small_model import finish, greedy, text

from localrun.backends.cpu.library import load_library, why_no_library
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.handle import GenerationHandle

CASES = {
    "full": CacheCase(LLAMA, "f16", ctx=4096, n_blocks=80),
    "full q8": CacheCase(LLAMA, "q8", ctx=4096, n_blocks=80),
    "windows": CacheCase(MISTRAL, "f16", ctx=4096, window_blocks=60),
    "mixed": CacheCase(GEMMA, "q4", ctx=4096, n_blocks=80, window_blocks=60),
    "linear attention": CacheCase(HYBRID, "f16", ctx=4096, n_blocks=80),
    "state space": CacheCase(GRANITE_H, "q8", ctx=4096, n_blocks=80),
    "short convolutions": CacheCase(LFM, "f16", ctx=4096, n_blocks=80),
}
N_SHARED = 1500


@pytest.fixture
def case(request: pytest.FixtureRequest) -> CacheCase:
    if load_library() is None:
        pytest.skip(f"no native library: {why_no_library()}")
    return CASES[request.param]


@pytest.fixture
def engine(case: CacheCase) -> Iterator[Engine]:
    engine = case.engine(native=True)
    yield engine
    engine.close()


@pytest.fixture
def fresh(case: CacheCase) -> Iterator[Engine]:
    engine = case.engine(native=True, keep_prefixes=False)
    yield engine
    engine.close()


def prompts(n: int, n_shared: int = N_SHARED, seed: int = 0) -> list[list[int]]:
    """They part ways inside a block, and are hardly longer than what they share."""
    return [text(n_shared, seed) + text(5 + number, seed + 100 + number) for number in range(n)]


def together(engine: Engine, asked: list[list[int]], max_tokens: int = 6) -> list[GenerationHandle]:
    """Submitted while the engine cannot take a step, so that all come to the same one."""
    with engine.lock:
        return [engine.submit(greedy(prompt, max_tokens)) for prompt in asked]


def answers(states: list[GenerationState]) -> list[list[int]]:
    return [state.token_ids[state.n_prompt :] for state in states]


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_what_is_shared_is_computed_once(engine: Engine, fresh: Engine) -> None:
    asked = prompts(4)
    done = [finish(handle) for handle in together(engine, asked)]
    assert answers(done) == answers([finish(fresh.submit(greedy(prompt, 6))) for prompt in asked])
    n_rests = sum(len(prompt) - N_SHARED // 64 * 64 for prompt in asked[1:])
    n_computed = sum(state.figures.prefill_rows for state in done)
    assert n_computed - n_rests <= 1.05 * len(asked[0])


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_the_reader_of_a_shared_prefix_may_end(engine: Engine, fresh: Engine) -> None:
    """Cancelled at random: those that are left have the answers that they have alone, and read little twice."""
    dice = random.Random(3)
    for round_number in range(3):
        asked = prompts(4, seed=1000 * round_number)
        engine.scheduler.cost.rows_per_second = 64.0  # in many steps
        handles = together(engine, asked)
        leaving = dice.sample(range(4), 2)
        for number in leaving:
            for _ in range(dice.randrange(3)):  # of the events, the first of which may be far
                if number == leaving[0]:
                    next(iter(handles[number]))
            handles[number].cancel()
        done = [finish(handle) for number, handle in enumerate(handles) if number not in leaving]
        alone = [asked[number] for number in range(4) if number not in leaving]
        assert answers(done) == answers([finish(fresh.submit(greedy(prompt, 6))) for prompt in alone])
    engine.store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in engine.store.pools)


@pytest.mark.parametrize("case", ["full q8", "linear attention"], indirect=True)
def test_the_next_computes_when_one_fails(engine: Engine, fresh: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, n_steps, run = prompts(3), 0, engine.runner.run

    def broken_once(plan, cancel=None):  # type: ignore[no-untyped-def]
        nonlocal n_steps
        n_steps += 1
        if n_steps == 3:
            raise MemoryError
        return run(plan, cancel)

    monkeypatch.setattr(engine.runner, "run", broken_once)
    first, *others = together(engine, asked)
    with pytest.raises(Exception, match="memory ran out"):
        finish(first)
    done = [finish(handle) for handle in others]
    assert answers(done) == answers([finish(fresh.submit(greedy(prompt, 6))) for prompt in asked[1:]])


@pytest.mark.parametrize("case", ["full", "state space"], indirect=True)
def test_forks_of_forks(engine: Engine, fresh: Engine) -> None:
    """The second leaves the first early, and the third and fourth leave the second late: nothing is read twice."""
    stem, branch = text(600), text(600, 1)
    asked = [stem + text(400, 2), stem + branch + text(9, 3), stem + branch + text(9, 4), stem + branch + text(9, 5)]
    done = [finish(handle) for handle in together(engine, asked)]
    assert answers(done) == answers([finish(fresh.submit(greedy(prompt, 6))) for prompt in asked])
    assert sum(state.figures.prefill_rows for state in done) <= 600 + 400 + 600 + 4 * (64 + 9)
