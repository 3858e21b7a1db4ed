"""The engine loop: what is cached, batched, preempted or cancelled never changes an answer."""

import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from localrun_testing.held_steps import wait_after
from localrun_testing.small_model import finish, greedy, small_engine, small_model, small_runner, text
from localrun_testing.waiting import PATIENCE

from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.errors import EngineError, ModelFileError, PromptTooLongError, UsageError
from localrun.base.events import Prefill
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.engine.sampler import SamplerSettings
from localrun.engine.scheduler import Scheduler
from localrun.model.config import group_layers


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = small_engine(ops=RowReferenceOps)
    yield engine
    engine.close()


def answer(handle: GenerationHandle) -> list[int]:
    sequence = finish(handle)
    return sequence.token_ids[sequence.n_prompt :]


def fresh_answer(prompt: list[int], max_tokens: int = 20) -> list[int]:
    engine = small_engine(ops=RowReferenceOps)
    try:
        return answer(engine.submit(greedy(prompt, max_tokens)))
    finally:
        engine.close()


def test_a_second_turn_reuses_all_but_the_last_token(engine: Engine) -> None:
    prompt = text(100)
    first = answer(engine.submit(greedy(prompt)))
    longer = prompt + first + text(7, seed=1)
    second = finish(engine.submit(greedy(longer)))
    assert second.figures.n_cached == len(prompt) + len(first) - 1  # the last token of an answer is never fed back
    assert second.token_ids[second.n_prompt :] == fresh_answer(longer)


def test_regenerate_and_branch_reuse_and_agree_with_a_fresh_engine(engine: Engine) -> None:
    prompt = text(110)
    answer(engine.submit(greedy(prompt)))
    again = finish(engine.submit(greedy(prompt)))
    assert again.figures.n_cached == len(prompt) - 1
    branch = prompt[:70] + text(10, seed=5)
    other = finish(engine.submit(greedy(branch)))
    assert other.figures.n_cached >= 70
    assert other.token_ids[other.n_prompt :] == fresh_answer(branch)
    assert finish(engine.submit(greedy(prompt))).figures.n_cached == len(prompt) - 1


def test_side_by_side_equals_one_by_one(engine: Engine) -> None:
    prompts = [text(n, seed=n) for n in (5, 70, 64, 1)]
    handles = [engine.submit(greedy(prompt, 12)) for prompt in prompts]
    assert [answer(handle) for handle in handles] == [fresh_answer(prompt, 12) for prompt in prompts]


def test_requests_that_come_together_begin_together(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the engine is between two steps, too."""
    step, run, all_there = engine._step, engine.runner.run, threading.Event()
    n_running: list[int] = []

    def wait_and_step() -> None:
        all_there.wait(PATIENCE)
        step()

    def watched(plan, cancel=None):  # type: ignore[no-untyped-def]
        n_running.append(len(plan.work))
        return run(plan, cancel)

    monkeypatch.setattr(engine, "_step", wait_and_step)
    monkeypatch.setattr(engine.runner, "run", watched)
    # How long a step took bounds the prompts that are read beside an answer: on a busy machine, not all six.
    monkeypatch.setattr(engine.scheduler.cost, "observe", lambda *measured: None)
    handles = [engine.submit(greedy(text(5, seed), 3)) for seed in range(6)]
    all_there.set()
    for handle in handles:
        answer(handle)
    assert n_running[1] == 6, "the first step may have begun with the first request"


def test_more_sequences_than_blocks_are_preempted_and_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    preempted, preempt = [], Scheduler._preempt

    def counted(scheduler: Scheduler, sequence: GenerationState) -> None:
        preempted.append(sequence)
        preempt(scheduler, sequence)

    monkeypatch.setattr(Scheduler, "_preempt", counted)
    engine = small_engine(ctx=128, n_blocks=3, ops=RowReferenceOps)
    prompts = [text(50, seed=n) for n in range(3)]
    try:
        with engine.lock:  # they come together: alone, each would have room
            handles = [engine.submit(greedy(prompt, 30)) for prompt in prompts]
        assert [answer(handle) for handle in handles] == [fresh_answer(prompt, 30) for prompt in prompts]
        assert preempted
    finally:
        engine.close()


def test_a_seed_gives_the_same_answer_whatever_runs_beside_it(engine: Engine) -> None:
    request = replace(greedy(text(40), 30), settings=SamplerSettings(temperature=1.5), seed=42)
    alone = answer(engine.submit(request))
    handles = [engine.submit(r) for r in (greedy(text(90, 3)), request, replace(request, seed=43))]
    answers = [answer(handle) for handle in handles]
    assert answers[1] == alone != answers[2]


def test_many_sampled_answers_side_by_side_are_those_alone() -> None:
    chain = SamplerSettings(temperature=1.1, top_k=20, top_p=0.9)
    requests = [replace(greedy(text(5, n), 4), settings=chain, seed=n) for n in range(20)]
    engine = small_engine(ctx=1024, n_blocks=40, ops=RowReferenceOps)
    try:
        together = [finish(handle).token_ids for handle in [engine.submit(request) for request in requests]]
        assert together == [finish(engine.submit(request)).token_ids for request in requests]
    finally:
        engine.close()


def test_stop_ids_end_an_answer_and_are_not_part_of_it(engine: Engine) -> None:
    prompt = text(30)
    free = answer(engine.submit(greedy(prompt)))
    stop = free[5]
    ended = finish(engine.submit(greedy(prompt, stop_ids=frozenset({stop}))))
    assert ended.stop_reason == "stop"
    assert ended.token_ids[ended.n_prompt :] == free[: free.index(stop)]


def test_max_tokens_and_a_full_context_are_length() -> None:
    engine = small_engine(ctx=100, n_blocks=4)
    limited = finish(engine.submit(greedy(text(10), 3)))
    assert (limited.stop_reason, limited.n_generated) == ("length", 3)
    full = finish(engine.submit(greedy(text(90), 100)))
    assert (full.stop_reason, full.n_tokens) == ("length", 100)
    engine.close()


def test_a_prompt_without_a_token_is_a_mistake_of_the_call() -> None:
    with pytest.raises(UsageError, match="empty"):
        greedy([], 1).check(vocab_size=9, ctx=9, can_roll=False)


def test_a_prompt_that_leaves_no_room_is_refused_at_once(engine: Engine) -> None:
    with pytest.raises(PromptTooLongError, match=r"512 tokens; the context holds 512"):
        engine.submit(greedy(text(512)))


def test_prefill_is_chunked_and_reported(engine: Engine) -> None:
    engine.scheduler.cost.rows_per_second = 64.0
    events = [e for e in engine.submit(greedy(text(150), 2)) if isinstance(e, Prefill)]
    assert len(events) > 1
    assert [e.done for e in events] == sorted({e.done for e in events})
    assert (events[-1].done, events[-1].total) == (150, 150)


def test_cancel_keeps_what_was_generated_and_the_engine_goes_on(engine: Engine) -> None:
    prompt = text(60)
    free = answer(engine.submit(greedy(prompt, 30)))
    may_go_on = wait_after(4, engine)
    handle = engine.submit(greedy(prompt, 400))
    got = []
    for event in handle:
        if isinstance(event, NewToken):
            got.append(event.token_id)
            if len(got) == 4:
                handle.cancel()
                may_go_on.set()
        if isinstance(event, Finished):
            assert event.sequence.stop_reason == "cancelled"
    assert got[:4] == free[:4]
    assert len(got) < 400
    assert answer(engine.submit(greedy(prompt, 30))) == free


def test_cancel_at_random_moments_never_corrupts_the_cache(engine: Engine) -> None:
    prompts = [text(100, seed=n % 3) + text(20, seed=n) for n in range(7)]
    for prompt in prompts:
        handle = engine.submit(greedy(prompt, 200))
        threading.Timer(random.Random(len(prompt)).uniform(0, 0.05), handle.cancel).start()
        finish(handle)
    for prompt in prompts[:3]:
        assert answer(engine.submit(greedy(prompt))) == fresh_answer(prompt)


def test_weights_that_are_not_numbers_are_an_error_not_an_answer() -> None:
    model = small_model()
    model.weights.output_norm[3] = float("nan")
    engine = small_engine(model=model)
    try:
        with pytest.raises(ModelFileError) as caught:
            finish(engine.submit(greedy(text(5))))
        assert caught.value.code == "NONFINITE"
    finally:
        engine.close()


def test_a_bug_inside_a_step_reaches_the_caller_and_the_next_request_works(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "run", broken)
        with pytest.raises(EngineError, match="broken on purpose"):
            finish(engine.submit(greedy(text(5))))
    assert answer(engine.submit(greedy(text(5)))) == fresh_answer(text(5))


def test_closing_ends_what_runs() -> None:
    engine = small_engine()
    handle = engine.submit(greedy(text(5), 400))
    engine.close()
    assert finish(handle).stop_reason in ("cancelled", "length")
    assert not engine.thread.is_alive()


def test_steps_do_not_run_on_the_calling_thread(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()
    compute = engine.runner.run

    def watched(*arguments: object) -> object:
        threads.add(threading.current_thread())
        return compute(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.runner, "run", watched)
    finish(engine.submit(greedy(text(5))))
    assert threads == {engine.thread}
    assert torch.get_num_threads() >= 1


def test_an_answer_ends_at_its_deadline_with_what_there_is(engine: Engine) -> None:
    """While it waits, and in the middle; the others go on."""
    assert answer(engine.submit(replace(greedy(text(30)), deadline=0.0))) == []
    may_go_on = wait_after(2, engine)
    late, other = engine.submit(greedy(text(30, 1), 400)), engine.submit(greedy(text(30, 2), 30))
    next(event for event in late if isinstance(event, NewToken))
    late.sequence.request = replace(late.sequence.request, deadline=0.0)
    may_go_on.set()
    ended = finish(late)
    assert (ended.stop_reason, 0 < ended.n_generated < 400) == ("length", True)
    assert len(answer(other)) == 30


def test_no_more_run_at_once_than_were_asked_for() -> None:
    model = small_model()
    runner = small_runner(model=model)
    groups = group_layers(model.config.layers)
    engine = Engine(runner, CacheStore(groups, [12] * len(groups), copy=runner.copy), 512, parallel=2)
    run, most = engine.runner.run, 0

    def counted(plan, cancel=None):  # type: ignore[no-untyped-def]
        nonlocal most
        most = max(most, len(engine.scheduler.running))
        return run(plan, cancel)

    engine.runner.run = counted  # type: ignore[method-assign]
    with engine.lock:
        handles = [engine.submit(greedy(text(20, seed), 8)) for seed in range(5)]
    assert [len(answer(handle)) for handle in handles] == [8] * 5
    assert most == 2
    engine.close()
