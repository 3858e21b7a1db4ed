"""Chats on small models with every kind of layer and codec: reused equals computed anew, bit for bit."""

import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from localrun_testing.cache_engine import (
    GEMMA,
    GPT_OSS,
    GRANITE_H,
    HYBRID,
    LATENTS,
    LFM,
    LLAMA,
    MISTRAL,
    NEMOTRON_H,
    SHARING,
    CacheCase,
)
from localrun_testing.held_steps import wait_after
from localrun_testing.small_model import FULL, WINDOWED, finish, greedy, text

from localrun.backends.cpu.library import load_library, why_no_library
from localrun.base.errors import EngineError, ModelFileError, UsageError
from localrun.base.events import Prefill
from localrun.engine.engine import Engine
from localrun.engine.handle import NewToken
from localrun.engine.step_cost import LEAST_ROWS
from localrun.engine.step_plan import StepPlan
from localrun.engine.view import StoreView
from localrun.model.config import LayerSpec
from localrun.ops.interface import StepCancelled

NATIVE = load_library() is not None
CASES = {
    "full f16": CacheCase(LLAMA, "f16"),
    "full q8": CacheCase(LLAMA, "q8"),
    "full k8v4": CacheCase(LLAMA, "k8v4"),
    "full q4": CacheCase(LLAMA, "q4"),
    "windows": CacheCase(MISTRAL, "f16", window_blocks=8),
    "windows q8": CacheCase(MISTRAL, "q8", "q8", window_blocks=8),
    "mixed f16": CacheCase(GEMMA, "f16", window_blocks=4),
    "mixed, full layers q8": CacheCase(GEMMA, "q8", window_blocks=4),
    "mixed q8": CacheCase(GEMMA, "q8", "q8", window_blocks=4),
    "mixed, full layers q4": CacheCase(GEMMA, "q4", window_blocks=4),
    "learned sinks": CacheCase(GPT_OSS, "f16", window_blocks=4),
    "learned sinks, full layers q8": CacheCase(GPT_OSS, "q8", window_blocks=4),
    "learned sinks k8v4": CacheCase(GPT_OSS, "k8v4", "k8v4", window_blocks=4),
    "learned sinks in a user's window": CacheCase(GPT_OSS, "q8", window_blocks=4, user_window=130),
    "linear attention": CacheCase(HYBRID, "f16", window_blocks=24),
    "linear attention q8": CacheCase(HYBRID, "q8", window_blocks=24),
    "linear attention q4": CacheCase(HYBRID, "q4", window_blocks=12),
    "short convolutions": CacheCase(LFM, "f16", window_blocks=24),
    "short convolutions q4": CacheCase(LFM, "q4", window_blocks=12),
    "state space": CacheCase(GRANITE_H, "f16", window_blocks=24),
    "state space q8": CacheCase(GRANITE_H, "q8", window_blocks=12),
    "layers of one block": CacheCase(NEMOTRON_H, "f16", window_blocks=24),
    "layers of one block q8": CacheCase(NEMOTRON_H, "q8", window_blocks=12),
    "latents": CacheCase(LATENTS, "f16"),
    "latents f32": CacheCase(LATENTS, "f32"),
    "latents, whatever the codec": CacheCase(LATENTS, "q4"),
    "shared keys and values": CacheCase(SHARING, "f16", window_blocks=4),
    "shared keys and values q8": CacheCase(SHARING, "q8", window_blocks=4),
    "shared keys and values, a user's window": CacheCase(SHARING, "q4", window_blocks=4, user_window=130),
    "a user's window": CacheCase(LLAMA, "f16", user_window=130),
    "a user's window q8": CacheCase(GEMMA, "q8", window_blocks=4, user_window=130),
}
Rows = dict[tuple[int, ...], bytes]


def watch(engine: Engine) -> Rows:
    """The logits of every last row from now on, by the ids before them."""
    rows: Rows = {}
    run = engine.runner.run

    def watched(plan, cancel=None):  # type: ignore[no-untyped-def]
        logits = run(plan, cancel)
        for index, work in enumerate(plan.work):
            sequence, n = work.sequence, work.n
            if sequence.n_computed + n > sequence.cache.reuse.n_tokens:  # not of what is replayed for others to read
                rows[tuple(sequence.token_ids[: sequence.n_computed + n])] = logits.row(index).tobytes()
        return logits

    engine.runner.run = watched  # type: ignore[method-assign]
    return rows


@pytest.fixture
def case(request: pytest.FixtureRequest) -> CacheCase:
    return CASES[request.param]


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    """Engines that are closed at the end."""
    opened: list[Engine] = []
    yield opened
    for engine in opened:
        engine.close()


def native(case: CacheCase, engines: list[Engine], keep_prefixes: bool = True) -> Engine:
    if not NATIVE:
        pytest.skip(f"no native library: {why_no_library()}")
    engines.append(case.engine(native=True, keep_prefixes=keep_prefixes))
    return engines[-1]


def random_chat(engine: Engine, seed: int, turns: int) -> int:
    """Turns, edits, branches and regenerated answers; how many tokens were not computed."""
    dice = random.Random(seed)
    prompt, chats, saved = text(250, seed), [], 0
    for turn in range(turns):
        engine.scheduler.cost.rows_per_second = dice.choice((64.0, 200.0, 1000.0))  # chunks of other sizes
        done = finish(engine.submit(greedy(prompt, dice.randint(1, 40))))
        saved += done.figures.n_cached
        chats.append(done.token_ids)
        what = dice.random()
        if what < 0.4:
            prompt = done.token_ids + text(dice.randint(1, 90), turn)
        elif what > 0.55:
            prompt = dice.choice(chats)
            prompt = prompt[: dice.randint(len(prompt) // 2, len(prompt))] + text(dice.randint(1, 40), turn)
        prompt = prompt[:700]
    return saved


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_a_chat_that_reuses_equals_one_that_does_not(case: CacheCase, engines: list[Engine]) -> None:
    reusing, fresh = native(case, engines), native(case, engines, keep_prefixes=False)
    found, expected = watch(reusing), watch(fresh)
    assert random_chat(reusing, 1, 16) > 1000
    assert random_chat(fresh, 1, 16) == 0
    shared = found.keys() & expected.keys()
    assert len(shared) > 100
    assert all(found[ids] == expected[ids] for ids in shared)


def in_small_chunks(engine: Engine, fresh: Engine, n_turns: int, n_prompt: int, most: float = 0.0) -> None:
    """Turns of a chat beside an answer that somebody watches, against the same alone and in whole blocks: logits differ
    by no more than `most`."""
    dice, sizes, schedule = random.Random(5), list[int](), engine.scheduler.schedule
    found, expected = watch(engine), watch(fresh)
    may_go_on = wait_after(1, engine)

    def watched() -> StepPlan:
        plan = schedule()
        sizes.extend(work.n for work in plan.work if work.n > 1)
        return plan

    engine.scheduler.schedule = watched  # type: ignore[method-assign]
    engine.scheduler.cost.rows_beside_watched = lambda: dice.randint(LEAST_ROWS, 63)  # type: ignore[method-assign]
    prompt = text(n_prompt, 3)
    for turn in range(n_turns):
        may_go_on.clear()
        beside = engine.submit(greedy(text(5, turn + 50), 900))
        next(event for event in beside if isinstance(event, NewToken))
        handle = engine.submit(replace(greedy(prompt, 4), priority="api"))
        may_go_on.set()
        done = finish(handle)
        beside.cancel()
        finish(beside)
        assert done.token_ids == finish(fresh.submit(greedy(prompt, 4))).token_ids
        prompt = done.token_ids + text(n_prompt // 2 + 7, turn)
    assert len({size for size in sizes if size < 64}) > n_turns
    shared = found.keys() & expected.keys()
    assert len(shared) >= 4 * n_turns
    for ids in shared:
        ours, theirs = (np.frombuffer(rows[ids], np.float32) for rows in (found, expected))
        assert np.abs(ours - theirs).max() <= most


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_chunks_of_a_few_rows_are_exact(case: CacheCase, engines: list[Engine]) -> None:
    case = replace(case, window_blocks=24)
    in_small_chunks(native(case, engines), native(case, engines, keep_prefixes=False), 3, 150)


@pytest.mark.parametrize(("layers", "most"), [(GEMMA[1:3], 0.0), (HYBRID[1:3], 1e-4)], ids=["windowed", "recurrent"])
def test_chunks_of_a_few_rows_on_the_reference(
    layers: tuple[LayerSpec, ...], most: float, engines: list[Engine]
) -> None:
    """To the bit, but for states: those sum many rows at a time."""
    case = CacheCase(layers, "q8")
    engines += [case.engine(native=False), case.engine(native=False, keep_prefixes=False)]
    reusing, fresh = engines
    in_small_chunks(reusing, fresh, 1, 90, most)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("case", CASES, indirect=True)
def test_long_chats_that_reuse(case: CacheCase, seed: int, engines: list[Engine]) -> None:
    reusing, fresh = native(case, engines), native(case, engines, keep_prefixes=False)
    found, expected = watch(reusing), watch(fresh)
    random_chat(reusing, seed, 40)
    random_chat(fresh, seed, 40)
    assert all(found[ids] == expected[ids] for ids in found.keys() & expected.keys())


def test_the_reference_reuses_and_rolls_alike(engines: list[Engine]) -> None:
    """Row by row, independent of the native library; slow, so little of it."""
    case = CacheCase(GEMMA[1:3], "q8", ctx=128, n_blocks=4, window_blocks=3, rolls=True)
    engines += [case.engine(native=False), case.engine(native=False, keep_prefixes=False)]
    rows = [watch(engine) for engine in engines]
    prompt = text(110)
    for turn in range(3):
        done = [finish(engine.submit(replace(greedy(prompt, 12), rolls=True))) for engine in engines]
        assert done[0].token_ids == done[1].token_ids
        assert turn == 0 or done[0].figures.n_cached == len(prompt) - 6
        prompt = done[0].token_ids + text(5, turn)
    assert done[0].n_tokens > case.ctx
    shared = rows[0].keys() & rows[1].keys()
    assert all(rows[0][ids] == rows[1][ids] for ids in shared)


def test_a_window_that_moved_on_is_replayed_and_said(engines: list[Engine]) -> None:
    engine = native(CacheCase(GEMMA, "f16", window_blocks=4), engines)
    prompt = text(600)
    finish(engine.submit(greedy(prompt, 2)))
    finish(engine.submit(greedy(text(300, 1), 2)))
    again = finish(engine.submit(greedy(prompt, 2)))
    assert again.figures.n_replayed > 0
    assert again.figures.n_cached + again.figures.n_replayed == 599
    assert again.figures.note == f"the sliding window had moved on: replayed {again.figures.n_replayed} tokens"


@pytest.mark.parametrize("codec", ["f16", "q8", "q4"])
@pytest.mark.parametrize("layers", [LLAMA, GEMMA], ids=["llama", "gemma"])
def test_regenerate_computes_one_token(layers: tuple, codec: str, engines: list[Engine]) -> None:  # type: ignore[type-arg]
    engine = native(CacheCase(layers, codec), engines)
    prompt = text(333)
    first = finish(engine.submit(greedy(prompt, 150)))
    again = finish(engine.submit(greedy(prompt, 150)))
    assert again.figures.n_cached == 332
    assert again.token_ids == first.token_ids
    turn = finish(engine.submit(greedy(first.token_ids + text(20, 2), 5)))
    assert turn.figures.n_cached == first.n_tokens - 1, "the last token of an answer is never fed back"


@pytest.mark.parametrize("codec", ["f16", "q8"])
def test_windows_are_there_where_a_chat_is_gone_back_to(codec: str, engines: list[Engine]) -> None:
    """In blocks for hardly more than one window: nothing but what differs is computed again, and to the same end."""
    layers = (replace(WINDOWED, window=100), replace(WINDOWED, window=100), FULL) * 2
    case = CacheCase(layers, codec, window_blocks=12)
    engine, fresh = native(case, engines), native(case, engines, keep_prefixes=False)

    def ask(prompt: list[int], n_known: int) -> list[int]:
        done = finish(engine.submit(greedy(prompt, 120)))
        assert n_known - 63 * (codec != "f16") <= done.figures.n_cached <= n_known
        assert done.token_ids == finish(fresh.submit(greedy(prompt, 120))).token_ids
        return done.token_ids

    history = ask(text(450), 0)
    prompt = history + text(330, 1)
    first = ask(prompt, 569)
    assert ask(prompt, 899) == first
    second = ask(history + text(40, 2), 570)
    ask(history + text(15, 3), 570)
    ask(second + text(9, 4), len(second) - 1)


def test_the_first_event_tells_what_is_cached(engines: list[Engine]) -> None:
    engine = native(CacheCase(LLAMA), engines)
    prompt = text(200)
    finish(engine.submit(greedy(prompt, 2)))
    events = list(engine.submit(greedy(prompt[:150] + text(30, 1), 2)))
    assert events[0] == Prefill(150, 150, 180, "differs at token 150 from what was kept")
    assert [e.done for e in events if isinstance(e, Prefill)] == [150, 180]


def test_where_a_prompt_differs_is_told_once(engines: list[Engine]) -> None:
    engine = native(CacheCase(LLAMA), engines)
    prompt, why = text(200), "differs at token 150: the template rewrote turn 2"
    finish(engine.submit(greedy(prompt, 2)))
    events = list(engine.submit(replace(greedy(prompt[:150] + text(30, 1), 2), rewritten=why)))
    assert events[0] == Prefill(150, 150, 180, why)


def test_a_request_hits_what_another_is_still_computing(engines: list[Engine]) -> None:
    engine = native(CacheCase(LLAMA), engines)
    prompt, both_there = text(300), wait_after(1, engine)  # a small model would have ended before
    long = engine.submit(greedy(prompt, 300))
    for event in long:
        if isinstance(event, NewToken):
            break
    second = engine.submit(greedy(prompt, 2))
    both_there.set()
    short = finish(second)
    assert short.figures.n_cached == 256, "the full blocks so far"
    long.cancel()
    finish(long)


def test_what_was_computed_survives_a_cancel_and_an_error(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = native(CacheCase(LLAMA), engines)
    engine.scheduler.cost.rows_per_second = 64.0
    prompt = text(600)
    handle = engine.submit(greedy(prompt, 2))
    for event in handle:
        if isinstance(event, Prefill) and event.done >= 128:
            handle.cancel()
    assert finish(engine.submit(greedy(prompt[:129], 1))).figures.n_cached == 128
    other = text(300, 1)
    finish(engine.submit(greedy(other, 1)))

    def broken(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "run", broken)
        with pytest.raises(EngineError, match="memory ran out"):
            finish(engine.submit(greedy(text(10, 2), 1)))
    assert finish(engine.submit(greedy(other, 1))).figures.n_cached == 299


def test_a_step_that_fails_leaves_nothing_of_its_sequence(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = native(CacheCase(LLAMA), engines)
    engine.scheduler.cost.rows_per_second = 64.0
    prompt = text(200)
    run, steps = engine.runner.run, []

    def wrong(plan, cancel=None):  # type: ignore[no-untyped-def]
        logits = run(plan, cancel)
        steps.append(plan)
        if len(steps) == 2:
            return replace(logits, finite=np.zeros_like(logits.finite))
        return logits

    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "run", wrong)
        with pytest.raises(ModelFileError, match="not numbers"):
            finish(engine.submit(greedy(prompt, 1)))
    assert finish(engine.submit(greedy(prompt, 1))).figures.n_cached == 0


@pytest.mark.parametrize("codec", ["f16", "q8"])
@pytest.mark.parametrize("layers", [LLAMA, GEMMA, MISTRAL], ids=["llama", "gemma", "mistral"])
def test_a_chat_rolls_past_the_context(layers: tuple, codec: str, engines: list[Engine]) -> None:  # type: ignore[type-arg]
    """Like a model of that window in a context that holds everything, in the memory of the context."""
    case = CacheCase(layers, codec, ctx=256, n_blocks=6, window_blocks=7, rolls=True)
    rolling = native(case, engines)
    large = native(replace(case, ctx=2048, n_blocks=40, window_blocks=40, user_window=192, rolls=False), engines, False)
    prompt = text(100)
    for turn in range(4):
        found = finish(rolling.submit(replace(greedy(prompt, 120), rolls=True)))
        assert found.stop_reason == "length"
        assert found.n_generated == 120
        assert found.token_ids == finish(large.submit(greedy(prompt, 120))).token_ids
        assert turn == 0 or found.figures.n_cached == found.n_prompt - 31
        prompt = found.token_ids + text(30, turn)
    longer = text(700, 9)
    found = finish(rolling.submit(replace(greedy(longer, 20), rolls=True)))
    assert found.token_ids == finish(large.submit(greedy(longer, 20))).token_ids


def test_rolling_is_refused_where_positions_do_not_allow_it(engines: list[Engine]) -> None:
    engine = native(CacheCase(LLAMA), engines)
    with pytest.raises(UsageError, match="cannot be forgotten"):
        engine.submit(replace(greedy(text(5), 1), rolls=True))
    engine = native(CacheCase(LLAMA, rolls=True), engines)
    engine.submit(replace(greedy(text(5), 1), rolls=True))
    engine.can_roll = False
    with pytest.raises(UsageError, match="cannot be forgotten"):
        engine.submit(replace(greedy(text(5), 1), rolls=True))


def test_warming_fills_the_cache_and_gives_way_at_once(engines: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = native(CacheCase(LLAMA), engines)
    prompt = text(700)
    handle = engine.warm(prompt)
    assert handle is not None
    assert finish(handle).n_generated == 0
    assert finish(engine.submit(greedy(prompt, 2))).figures.n_cached == 699
    run, may_warm = engine.runner.run, threading.Event()

    def held(plan, cancel=None):  # type: ignore[no-untyped-def]
        while plan.work[0].sequence.request.is_warm_up and not (may_warm.is_set() or cancel.is_set()):
            may_warm.wait(0.001)
        return run(plan, cancel)

    monkeypatch.setattr(engine.runner, "run", held)
    engine.scheduler.cost.rows_per_second = 64.0
    other = text(900, 1)
    handle = engine.warm(other)
    assert handle is not None
    assert finish(engine.submit(greedy(text(30, 2), 2))).n_generated == 2
    assert handle.sequence.stop_reason is None, "the request did not wait for it"
    may_warm.set()
    assert finish(handle).stop_reason == "length"
    assert finish(engine.submit(greedy(other, 1))).figures.n_cached == 899
    assert engine.warm([]) is None
    assert engine.warm(text(2000)) is None


def test_a_step_without_waiting_requests_is_cancelled(engines: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = native(CacheCase(LLAMA), engines)
    run = engine.runner.run
    cut: list[object] = []

    def slow(plan, cancel=None):  # type: ignore[no-untyped-def]
        if plan.work[0].sequence.request.is_warm_up and not cut:
            while not cancel.is_set():
                pass
            cut.append(plan)
            raise StepCancelled
        return run(plan, cancel)

    monkeypatch.setattr(engine.runner, "run", slow)
    handle = engine.warm(text(500))
    assert handle is not None
    while not engine.scheduler.running:
        pass
    assert finish(engine.submit(greedy(text(20, 1), 1))).n_generated == 1
    assert cut
    finish(handle)


def test_the_view_shows_every_block(engines: list[Engine]) -> None:
    engine = native(CacheCase(GEMMA, window_blocks=10), engines)
    assert engine.view().states == ("", "")
    prompt = text(300)
    finish(engine.submit(greedy(prompt, 2)))
    windowed, full = engine.view().states
    assert (windowed, full) == ("wwwwc", "ccccc")
    finish(engine.submit(greedy(prompt + text(50, 1), 2)))
    windowed, full = engine.view().states
    assert (windowed, full) == ("wwwwwc", "rrrrcc")
    view = engine.view()
    assert view.n_tokens == 351
    assert 0 < view.used_blocks < view.total_blocks == 50
    assert view.tree_tokens == 351 + 301 - 256


def test_the_view_can_be_taken_while_steps_run(engines: list[Engine]) -> None:
    engine = native(CacheCase(GEMMA, window_blocks=10), engines)
    for event in engine.submit(greedy(text(300), 200)):
        if isinstance(event, NewToken):
            view = engine.view()
            assert len(set(map(len, view.states))) == 1
            assert view.chat_bytes == held_bytes(engine, view), "the picture and the figure agree"
    assert engine.view().chat_bytes == held_bytes(engine, engine.view())


def held_bytes(engine: Engine, view: StoreView) -> int:
    """Bytes of the blocks that a view shows."""
    sizes = engine.generations.block_sizes
    return sum((len(states) - states.count("w")) * size for states, size in zip(view.states, sizes, strict=False))


@pytest.mark.parametrize("name", ["full q8", "mixed q8"])
def test_more_sequences_than_the_pools_hold_take_turns(name: str, engines: list[Engine]) -> None:
    case = replace(CASES[name], n_blocks=14, window_blocks=9, ring_blocks=9)
    crowded, fresh = native(case, engines), native(CASES[name], engines, keep_prefixes=False)
    prompts = [text(100 + 20 * n, n) for n in range(6)]
    handles = [crowded.submit(greedy(prompt, 40)) for prompt in prompts]
    found = [finish(handle).token_ids for handle in handles]
    assert found == [finish(fresh.submit(greedy(prompt, 40))).token_ids for prompt in prompts]
