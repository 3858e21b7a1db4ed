"""A request owns its failure: whatever ends one generation leaves the ids, the steps and the life of others alone."""

import math
import multiprocessing
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.small_model import finish, greedy, small_engine, small_model, text
from localrun_testing.waiting import PATIENCE, until

from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.errors import EngineError, LocalrunError, ModelFileError, UsageError
from localrun.engine import engine as engine_module
from localrun.engine import generations
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.engine.sampler import SamplerSettings
from localrun.ops.interface import StepCancelled

POISON = 13


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = small_engine(ops=RowReferenceOps, n_blocks=40)
    yield engine
    engine.close()


def clean_text(n: int, seed: int = 0) -> list[int]:
    return [token if token != POISON else POISON + 1 for token in text(n, seed)]


def unpoisoned(prompt: list[int]) -> GenerationRequest:
    """One whose answer never has the token."""
    return replace(greedy(prompt, 30), logit_bias={POISON: -1e6})


def answer(handle: GenerationHandle) -> list[int]:
    sequence = finish(handle)
    return sequence.token_ids[sequence.n_prompt :]


def discarded_steps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every step that is thrown away from now on though somebody in it was not cancelled."""
    found: list[int] = []
    run = engine.runner.run

    def counted(plan: Any, cancel: Any) -> Any:
        try:
            return run(plan, cancel)
        except StepCancelled:
            if not all(work.sequence.cancelled.is_set() for work in plan.work):
                found.append(plan.n_rows)
            raise

    monkeypatch.setattr(engine.runner, "run", counted)
    return found


@pytest.fixture
def poisoned() -> Iterator[Engine]:
    """An engine whose model computes NaN for whatever has seen one token."""
    model = small_model()
    model.weights.embed.packed.planes[0][POISON] = math.nan
    engine = small_engine(model=model, ops=RowReferenceOps, n_blocks=40)
    yield engine
    engine.close()


def test_values_that_are_no_numbers_end_their_own_answer_only(poisoned: Engine) -> None:
    prompts = [clean_text(n, seed=n) for n in (5, 90, 130)]
    alone = [answer(poisoned.submit(unpoisoned(prompt))) for prompt in prompts]
    poisoned.store.tree.clear()
    bad = [*prompts[1], POISON, *clean_text(40, 7)]
    poisoned.scheduler.cost.rows_per_second = 64.0  # in chunks of a block
    handles = [poisoned.submit(unpoisoned(prompt)) for prompt in (prompts[0], bad, *prompts[1:])]
    with pytest.raises(ModelFileError) as caught:
        finish(handles.pop(1))
    assert caught.value.code == "NONFINITE"
    assert [answer(handle) for handle in handles] == alone


def test_nothing_of_a_failed_answer_stays_in_the_cache(poisoned: Engine) -> None:
    bad = [*clean_text(70), POISON, *clean_text(100, 2)]
    with pytest.raises(ModelFileError):
        finish(poisoned.submit(greedy(bad)))
    assert poisoned.store.tree.n_tokens == 0
    assert all(pool.n_free == pool.n_blocks for pool in poisoned.store.pools)
    again = finish(poisoned.submit(unpoisoned(bad[:70])))
    assert again.figures.n_cached == 0


@pytest.mark.parametrize("error", [ValueError("broken on purpose"), MemoryError(), LocalrunError("told", "try")])
def test_an_exception_while_choosing_ends_its_own_answer_only(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    prompts = [text(n, seed=n) for n in (5, 70, 20)]
    alone = [answer(engine.submit(greedy(prompt, 12))) for prompt in prompts]
    from localrun.engine.next_tokens import NextRow, sample_next

    def broken(logits: Any, wanted: list[NextRow]) -> list[int]:
        if any(each.sequence.request.seed == 666 and each.sequence.n_generated == 3 for each in wanted):
            raise error
        return sample_next(logits, wanted)

    monkeypatch.setattr(generations, "sample_next", broken)
    requests = [*(greedy(prompt, 12) for prompt in prompts), replace(greedy(text(33), 12), seed=666)]
    handles = [engine.submit(request) for request in requests]
    with pytest.raises(LocalrunError, match=r"broken on purpose|memory ran out|told"):
        finish(handles.pop())
    assert [answer(handle) for handle in handles] == alone


CHANGES: list[dict[str, Any]] = [
    *({"settings": SamplerSettings(temperature=bad)} for bad in (math.nan, math.inf, -1.0)),
    *({"settings": SamplerSettings(repeat_penalty=bad)} for bad in (0.0, math.nan, -1.0)),
    *({"settings": SamplerSettings(presence_penalty=bad)} for bad in (math.nan, math.inf)),
    {"settings": SamplerSettings(frequency_penalty=-math.inf)},
    *({"settings": SamplerSettings(top_p=bad)} for bad in (7.0, -0.1, math.nan)),
    {"settings": SamplerSettings(min_p=math.nan)},
    *({"settings": SamplerSettings(top_k=bad)} for bad in (-1, True)),
    *({"logit_bias": bad} for bad in ({2**31: 1.0}, {-1: 1.0}, {97: 1.0}, {1: math.nan}, {1: math.inf}, {"1": 1})),
    *({"max_tokens": bad} for bad in (0, -1, 2.5)),
    *({"prompt": bad} for bad in ((97,), (1, -1), ())),
    *({"seed": bad} for bad in (-1, 2**64, "x")),
]


def test_what_is_wrong_with_a_request_is_said_before_it_runs(engine: Engine) -> None:
    others = [engine.submit(greedy(text(n, seed=n), 40)) for n in (5, 70)]
    for change in CHANGES:
        with pytest.raises(UsageError) as caught:
            engine.submit(replace(greedy([1, 2]), **change))
        assert caught.value.hint, change
    assert all(finish(handle).n_generated == 40 for handle in others)


def test_a_step_that_fails_ends_those_in_it_and_the_engine_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, n_failed = engine.runner.run, 0

    def broken_once(plan: Any, cancel: Any) -> Any:
        nonlocal n_failed
        if any(s.request.seed == 666 for s in (w.sequence for w in plan.work)):
            n_failed += 1
            raise ValueError("broken on purpose")
        return run(plan, cancel)

    engine.scheduler.max_running = 1
    monkeypatch.setattr(engine.runner, "run", broken_once)
    handles = [engine.submit(replace(greedy(text(9), 5), seed=seed)) for seed in (0, 666, 1, 666)]
    for handle in handles[1::2]:
        with pytest.raises(EngineError, match="broken on purpose"):
            finish(handle)
    assert [finish(handle).n_generated for handle in handles[::2]] == [5, 5]
    assert n_failed == 2


def test_answers_that_end_throw_no_step_of_others_away(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    discarded = discarded_steps(engine, monkeypatch)

    def ask_and_leave(request: GenerationRequest) -> None:
        handle = engine.submit(request)
        for event in handle:
            if isinstance(event, Finished):
                break
        handle.cancel()  # as everybody does who leaves a stream

    long = engine.submit(greedy(text(400), 60))
    short = [threading.Thread(target=ask_and_leave, args=(greedy(text(9, n), 3 + n),)) for n in range(14)]
    for thread in short:
        thread.start()
    for thread in short:
        thread.join(PATIENCE)
    assert finish(long).n_generated == 60
    assert discarded == []


def test_one_that_is_cancelled_costs_the_others_no_step(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = answer(engine.submit(greedy(text(50), 80)))
    discarded = discarded_steps(engine, monkeypatch)
    long = engine.submit(greedy(text(50), 80))
    for n in range(10):
        handle = engine.submit(greedy(text(90, n), 400))  # more than come until it is cancelled
        for event in handle:
            if isinstance(event, NewToken):
                break
        handle.cancel()
        assert finish(handle).stop_reason == "cancelled"
    assert answer(long) == alone
    assert discarded == []


def test_a_step_without_waiting_generations_is_cancelled(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a prompt, too: others read it to its end (ik_llama.cpp#1020)."""
    started, run = threading.Event(), engine.runner.run

    def endless(plan: Any, cancel: Any) -> Any:
        if plan.n_rows < 40:
            return run(plan, cancel)
        started.set()
        until(cancel.is_set)
        raise StepCancelled

    monkeypatch.setattr(engine.runner, "run", endless)
    handle = engine.submit(greedy(text(50)))
    assert started.wait(PATIENCE)
    handle.cancel()
    assert finish(handle).stop_reason == "cancelled"
    started.clear()
    warm = engine.warm(text(45))
    assert warm is not None
    assert started.wait(PATIENCE)
    assert finish(engine.submit(greedy(text(5), 4))).n_generated == 4  # goes before what is in the background
    warm.cancel()


def test_no_generation_waits_after_the_engine_ended(engine: Engine) -> None:
    handle = engine.submit(greedy(text(5), 400))
    engine.close()
    assert finish(handle).stop_reason in ("cancelled", "length")
    with pytest.raises(EngineError, match="is closed"):
        engine.submit(greedy(text(5)))
    assert engine.warm(text(5)) is None
    with pytest.raises(EngineError, match="is closed"):
        engine.view()
    late = GenerationHandle(GenerationState(greedy([1])), engine)
    with pytest.raises(EngineError, match="is closed"):
        finish(late)
    engine.close()


def ask_in_a_child(engine: Engine, handle: GenerationHandle, said: Any) -> None:
    for ask in (lambda: engine.submit(greedy([1])), lambda: finish(handle), engine.view):
        try:
            ask()
            said.put("answered")
        except EngineError as error:
            said.put(error.message)
    engine.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_told_at_once(engine: Engine) -> None:
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    handle = engine.submit(greedy(text(5), 500))
    child = context.Process(target=ask_in_a_child, args=(engine, handle, said))
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    assert all("forked" in said.get() for _ in range(3))
    finish(handle)
    assert answer(engine.submit(greedy(text(5), 4)))


def test_a_bug_outside_a_step_is_told_and_the_engine_goes_on(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken on purpose")

    running = engine.submit(greedy(text(5), 500))
    with monkeypatch.context() as patch:
        patch.setattr(engine.scheduler, "add", broken)
        with pytest.raises(EngineError, match="broken on purpose"):
            finish(engine.submit(greedy(text(5))))
    with pytest.raises(EngineError, match="broken on purpose"):
        finish(running)
    assert answer(engine.submit(greedy(text(5), 4)))


def test_a_disk_that_fails_does_not_fail_answers(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class BrokenDisk:
        restored = ()
        n_asked = 0

        def save_one(self) -> float:
            self.n_asked += 1
            raise OSError("the disk is on fire")

    disk: Any = BrokenDisk()
    monkeypatch.setattr(engine_module, "IDLE_SECONDS", 0.0)
    engine.disk = disk
    assert answer(engine.submit(greedy(text(5), 4)))
    until(lambda: disk.n_asked > 0)
    assert answer(engine.submit(greedy(text(5), 4)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_lets_everybody_go(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(engine.runner, "run", dying)
    handle = engine.submit(greedy(text(5), 500))
    assert finish(handle).stop_reason == "cancelled"
    engine.thread.join(PATIENCE)
    with pytest.raises(EngineError, match="has stopped"):
        engine.submit(greedy(text(5)))
    unheard = GenerationHandle(GenerationState(greedy([1])), engine)
    with pytest.raises(EngineError, match="has stopped"):
        finish(unheard)
