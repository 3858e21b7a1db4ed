"""The figures of memory and pace: one KV figure wherever it is shown, and rates of work that was done."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.waiting import until

from localrun.base.events import Accepted, Completion, Done
from localrun.base.request import KVCodecName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.diagnose.diagnosis import diagnose
from localrun.diagnose.facts import facts_of
from localrun.diagnose.words import in_words
from localrun.engine.handle import GenerationHandle

PATH = Path(resource("localrun/builtin/localrun-tiny.gguf"))


@pytest.fixture(params=["f16", "q8"])
def client(request: pytest.FixtureRequest) -> Iterator[LocalClient]:
    kv: KVCodecName = request.param
    with LocalClient(LoadOptions(PATH, name="builtin", ctx=1024, kv=kv)) as client:
        yield client


def ask(client: LocalClient, text: str, **options: Any) -> Completion:
    request = Request(({"role": "user", "content": text},), None, Sampling(temperature=0.0), 5, **options)
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))


def held_blocks(client: LocalClient) -> int:
    """Bytes of every block that anybody holds, counted one by one."""
    engine = client.model.engine
    return sum(
        size
        for pool, size in zip(engine.store.pools, engine.runner.block_sizes, strict=True)
        for references in pool.references
        if references
    )


def test_the_cache_of_an_answer_is_one_figure(client: LocalClient) -> None:
    done = ask(client, "word " * 300)
    view = client.view()
    coded = sum(sum(state != "w" for state in group.states) * group.block_bytes for group in view.groups)
    rings = 0 if client.info.kv_codec == "f16" else 3 * client.model.engine.runner.executor.ring_bytes(0)
    assert done.memory.kv_bytes == view.kv.chat == coded + rings
    assert (view.kv.kept, view.kv.budget) == (done.memory.kept_kv_bytes, done.memory.kv_budget_bytes)
    assert view.kv.chat + view.kv.kept >= held_blocks(client)
    assert view.kv.budget == client.model.plan.kv_bytes
    assert view.n_tokens == done.cache.held_tokens


def test_what_is_kept_of_other_chats_is_counted_beside_it(client: LocalClient) -> None:
    first = ask(client, "word " * 300)
    assert (first.memory.kept_kv_bytes or 0) < (first.memory.kv_bytes or 0) / 10
    second = ask(client, "another " * 200)
    share = (second.memory.kept_kv_bytes or 0) / (first.memory.kv_bytes or 1)
    assert 0.6 < share <= 1  # less some 16-bit blocks at its end
    assert client.view().kv.kept == second.memory.kept_kv_bytes
    cache = next(part for part in client.view().memory if part.name == "KV cache")
    assert held_blocks(client) <= cache.measured <= cache.predicted


def test_memory_is_measured_as_far_as_it_is_used(client: LocalClient) -> None:
    """Address space that is set aside and never touched takes nothing."""
    before = {part.name: part.measured for part in client.view().memory}
    assert before["KV cache"] == 0
    assert before["KV cache"] + before["weights"] < before["whole process"]
    ask(client, "word " * 100)
    after = {part.name: part.measured for part in client.view().memory}
    assert 0 < after["KV cache"] < client.model.plan.kv_bytes / 2


def test_a_stopped_prefill_counts_what_was_computed(client: LocalClient, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, steps = client.model.engine, 0
    monkeypatch.setattr(engine.scheduler, "max_rows", 64)
    run = engine.runner.run

    def stop_in_the_third(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 3:
            for work in arguments[0].work:
                engine.generations.handles[work.sequence.number].cancel()
        return run(*arguments)

    monkeypatch.setattr(engine.runner, "run", stop_in_the_third)
    done = ask(client, "word " * 600)
    assert done.stop_reason == "cancelled"
    assert (done.prompt_tokens or 0) > 600
    assert done.cache.computed_tokens == done.cache.held_tokens == client.view().n_tokens
    assert done.cache.computed_tokens in (128, 192)
    assert done.timings.prefill_tps == pytest.approx(1000 * done.cache.computed_tokens / done.timings.prefill_ms)


def test_a_hit_is_no_work(client: LocalClient) -> None:
    first, again = ask(client, "word " * 300), ask(client, "word " * 300)
    assert first.cache.computed_tokens == first.prompt_tokens
    assert again.cache.computed_tokens == 1
    assert again.cache.held_tokens == first.cache.held_tokens


def test_the_work_of_a_token_is_that_of_all_matrices(client: LocalClient) -> None:
    work, config = client.info.work, client.model.plan.config
    if client.info.backend != "cpu":
        assert work is None
        return
    assert work is not None
    layer = config.layers[0]
    n_params = config.hidden_size * (2 * layer.head_dim * (layer.n_heads + layer.n_kv_heads) + 3 * layer.ffn_size)
    assert work.macs + work.wide_macs == config.n_layers * n_params + config.vocab_size * config.hidden_size
    assert work.attention_macs == 2 * config.n_layers * layer.n_heads * layer.head_dim
    assert 0.5 * client.info.weights_bytes < work.weight_bytes <= client.info.weights_bytes


def test_without_kept_chats_nothing_is_set_aside_for_them() -> None:
    with LocalClient(LoadOptions(PATH, ctx=512, prefix_cache=False)) as client:
        plan = client.model.plan
        assert plan.kept_kv_bytes == 0
        assert plan.peak_bytes == plan.needed_bytes
        done = ask(client, "word " * 100)
        assert (done.memory.kept_kv_bytes, held_blocks(client)) == (0, 0)


def test_a_new_system_prompt_is_known_as_what_changed(client: LocalClient) -> None:
    """At its first token that is another one, though the cache may know less of it."""
    request = Request(
        ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "word " * 200}), max_tokens=5
    )
    done = next(event for event in client.generate(request) if isinstance(event, Done))
    told = done.completion.meanwhile
    assert told is not None
    assert (told.changed_at, told.ahead, told.beside_tokens) == (None, 0, 0)
    known = done.prompt_ids + done.completion.token_ids
    turn = ({"role": "assistant", "content": done.completion.text}, {"role": "user", "content": "And?"})
    kinder = ({"role": "system", "content": "Be kind."}, *request.messages[1:], *turn)
    ids = client.model.text.prepare(Request(kinder)).ids
    same = next(n for n, (a, b) in enumerate(zip(known, ids, strict=False)) if a != b)
    again = next(
        event.completion
        for event in client.generate(Request(kinder, max_tokens=5, known_ids=known))
        if isinstance(event, Done)
    )
    assert again.meanwhile is not None
    assert (again.meanwhile.changed_at, again.meanwhile.changed_turn) == (same, 0)
    assert (again.cached_tokens or 0) <= same
    quiet = replace(again.meanwhile, others_share=0.0, idle_share=0.0, stopped_ms=0.0, page_faults=0)
    facts = facts_of({**again.flat(), "meanwhile": quiet, "prefill_ms": 1e4}, None)
    assert facts is not None
    found = diagnose(facts)
    assert found is not None
    assert f"its beginning, or system prompt, changed at token {same}" in in_words(found, facts).line


def test_an_answer_knows_of_those_beside_it(client: LocalClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [Request(({"role": "user", "content": f"{word} " * 150},), max_tokens=20) for word in ("one", "two")]
    first, second = side_by_side(client, asked, monkeypatch)
    told = [events[-1].completion.meanwhile for events in (first, second)]
    assert told[0] is not None
    assert told[1] is not None
    assert (told[0].ahead, told[1].ahead) == (0, 1)
    assert min(told[0].beside_tokens, told[1].beside_tokens) > 0


def side_by_side(client: LocalClient, requests: Sequence[Request], monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Events of requests that come one after another, before any of them is computed."""
    engine, started, answers = client.model.engine, list[GenerationHandle](), []
    start = engine.start

    def start_noted(handle: GenerationHandle) -> None:
        start(handle)
        started.append(handle)

    monkeypatch.setattr(engine, "start", start_noted)
    with ThreadPoolExecutor(len(requests)) as threads:
        with engine.lock:
            for request in requests:
                answers.append(threads.submit(list, client.generate(request)))
                until(lambda: len(started) == len(answers))
        return [answer.result() for answer in answers]


def test_a_prompt_is_accepted_before_anything_of_it_is_computed(client: LocalClient) -> None:
    """Whoever passes it on would wait for the engine, which takes every processor."""
    events = iter(client.generate(Request(({"role": "user", "content": "hi"},), max_tokens=2)))
    assert isinstance(next(events), Accepted)
    assert not client.model.engine.generations.handles
    assert client.model.engine.inbox.empty()
    assert isinstance(list(events)[-1], Done)
