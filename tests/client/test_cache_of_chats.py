"""Chats in one process: what of their history is reused, what is said about it, and what the cache shows."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.waiting import until

from localrun.base.errors import PromptTooLongError
from localrun.base.events import Completion, Done, Event, Prefill
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.client.rewritten_history import rewritten_history
from localrun.text.template import ChatTemplate

PATH = Path(resource("localrun/builtin/localrun-tiny.gguf"))
FORGETFUL = """{%- for m in messages -%}
<|im_start|>{{ m.role }}\n
{%- if m.role == 'assistant' and not loop.last -%}{{ m.content[9:] }}{%- else -%}{{ m.content }}{%- endif -%}
<|im_end|>\n
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"""


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(PATH, name="builtin", ctx=512)) as client:
        yield client


@pytest.fixture
def forgetful(client: LocalClient) -> Iterator[LocalClient]:
    """A client whose template drops the beginning of earlier answers, as others drop thoughts."""
    model = client.model
    client.model = replace(model, text=replace(model.text, template=ChatTemplate(FORGETFUL, "", "")))
    yield client
    client.model = model


def ask(text: str, **options: Any) -> Request:
    sampling = Sampling(temperature=0.0)
    return Request(messages=({"role": "user", "content": text},), sampling=sampling, **{"max_tokens": 30, **options})


def finish(events: Iterator[Event]) -> tuple[Completion, tuple[int, ...]]:
    done = [event for event in events if isinstance(event, Done)]
    assert len(done) == 1
    return done[0].completion, done[0].prompt_ids


def next_turn(request: Request, answer: Completion, prompt: tuple[int, ...], question: str) -> Request:
    turn: tuple[dict[str, Any], ...] = (
        {"role": "assistant", "content": answer.text},
        {"role": "user", "content": question},
    )
    return replace(request, messages=request.messages + turn, known_ids=prompt + answer.token_ids)


def test_that_nothing_is_kept_on_the_disk_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1))
    with LocalClient(LoadOptions(PATH, name="builtin", ctx=512, disk_cache=1 << 30)) as full:
        disk = full.model.engine.disk
        assert disk is not None
        until(lambda: disk.writer.problem)
        notes = [finish(full.generate(ask("Tell me a joke")))[0].cache.cache_note for _ in range(2)]
    assert "nothing more is kept on disk: No space left on device" in notes[0]
    assert "disk" not in notes[1]


def test_known_ids_are_never_encoded_again(client: LocalClient) -> None:
    request = ask("Tell me a joke")
    answer, prompt = finish(client.generate(request))
    second = next_turn(request, answer, prompt, "Another one")
    again, longer = finish(client.generate(second))
    assert longer[: len(second.known_ids)] == second.known_ids
    assert (again.cached_tokens or 0) >= len(second.known_ids) - 1
    assert again.cache.cache_note == ""


def test_the_timeline_adds_up(client: LocalClient) -> None:
    started = time.perf_counter()
    done, prompt = finish(client.generate(ask("What is a prefix cache, and what is it good for?")))
    total = 1000 * (time.perf_counter() - started)
    parts = (done.timings.render_ms, done.timings.tokenize_ms, done.timings.prefill_ms, done.timings.decode_ms)
    assert all(part > 0 for part in parts)
    assert sum(parts) <= total
    assert sum(parts[:3]) <= done.timings.ttft_ms, "what comes before the first token is in the time to it"
    assert (done.cache.restored_tokens, done.timings.restore_ms, done.cache.replayed_tokens) == (0, 0.0, 0)
    assert len(prompt) == done.prompt_tokens


def test_a_rewritten_history_is_said_and_computed_before_it_is_needed(forgetful: LocalClient) -> None:
    endless = Sampling(temperature=0.0, logit_bias=dict.fromkeys(forgetful.model.text.tokenizer.eog_ids, -100.0))
    request = replace(ask("Say something. And then. Something else.", max_tokens=40), sampling=endless)
    stream = forgetful.generate(request)
    answer, prompt = finish(stream)
    assert len(answer.text) > 9, "the template has something to drop"
    warming = forgetful._warming
    assert warming is not None
    list(warming)  # until it is done
    request = next_turn(request, answer, prompt, "Go on")
    events = list(forgetful.generate(request))
    second = next(event.completion for event in events if isinstance(event, Done))
    assert "the template rewrote turn 1" in second.cache.cache_note
    assert isinstance(events[1], Prefill)
    assert events[1].note == second.cache.cache_note
    assert second.cached_tokens == warming.sequence.n_prompt > len(prompt), "all but the question was computed before"


def test_what_is_left_alone_is_not_computed_again(client: LocalClient) -> None:
    before = client._warming
    finish(client.generate(ask("Hi")))
    assert client._warming is before
    text = client.model.text
    known = [*text.prepare(ask("Hi")).ids, *text.tokenizer.encode("Hello there")]
    assert rewritten_history(text, ask("Hi"), "Hello there", "", known) == []


def test_the_rewritten_history_is_what_the_next_turn_begins_with(forgetful: LocalClient) -> None:
    text = forgetful.model.text
    prompt = text.prepare(ask("Hi")).ids
    said = "A cache, and what it holds"
    known = [*prompt, *text.tokenizer.encode(said)]
    again = rewritten_history(text, ask("Hi"), said, "", known)
    assert again[: len(prompt)] == prompt
    shown = text.tokenizer.decode(again, special=True)
    assert "and what it holds" in shown
    assert "A cache" not in shown
    assert rewritten_history(text, Request(prompt="Hi"), said, "", known) == []


def test_the_view_counts_what_is_there(client: LocalClient) -> None:
    answer, prompt = finish(client.generate(ask("How do I see what the cache holds? " * 8, max_tokens=70)))
    view = client.view()
    assert len(prompt) + len(answer.token_ids) - 1 <= view.n_tokens <= len(prompt) + len(answer.token_ids)
    assert (view.ctx, view.block_tokens) == (512, 64)
    (group,) = view.groups
    assert (group.name, group.window, group.codec) == (f"{client.model.plan.config.n_layers} layers", None, "f16")
    assert len(group.states) == -(-view.n_tokens // 64)
    assert set(group.states) <= {"r", "c"}
    assert 0 < view.used_blocks <= view.total_blocks
    assert view.tree_tokens >= view.n_tokens
    memory = {part.name: part for part in view.memory}
    assert memory["weights"].predicted == memory["weights"].measured


def test_memory_of_the_cache_is_what_chats_have_filled_and_never_more_than_planned() -> None:
    with LocalClient(LoadOptions(PATH, ctx=512)) as client:
        if not client.model.plan.grows:
            pytest.skip("the reference takes all of its cache at once")
        kv = client.view().kv
        assert kv is not None
        block = kv.budget // client.view().total_blocks
        measured: list[int] = []
        for n in range(1, 16):
            answer, prompt = finish(client.generate(ask(f"{n} How do I see what a cache holds? " * 20)))
            view = client.view()
            part = next(part for part in view.memory if part.name == "KV cache")
            assert part.predicted == kv.budget
            measured.append(part.measured)
            if n == 1:
                n_blocks = -(-(len(prompt) + len(answer.token_ids) - 1) // 64)
                assert n_blocks <= part.measured / block <= n_blocks + 1, "one to copy a shared block into"
    assert measured == sorted(measured), "a block of a cache that grows takes memory for good"
    assert measured[-1] == part.predicted, "full in the end, and no more"


def test_a_chat_may_roll_past_the_context(client: LocalClient) -> None:
    long = "One two three four five six seven. " * 120
    with pytest.raises(PromptTooLongError):
        client.generate(ask(long))
    rolled, prompt = finish(client.generate(ask(long, overflow="roll", max_tokens=10)))
    assert rolled.prompt_tokens == len(prompt) > 512
    assert rolled.completion_tokens == 10
    assert "w" in client.view().groups[0].states


@pytest.mark.parametrize("kv", ["q8", "k8v4", "q4"])
def test_every_codec_serves_a_chat_and_regenerates_from_the_cache(kv: Any) -> None:
    with LocalClient(LoadOptions(PATH, ctx=512, kv=kv)) as client:
        assert client.info.kv_codec == kv
        first, prompt = finish(client.generate(ask("Tell me about otters. " * 10, max_tokens=50)))
        again, _ = finish(client.generate(ask("Tell me about otters. " * 10, max_tokens=50)))
        assert again.cached_tokens == len(prompt) - 1
        assert again.token_ids == first.token_ids


def test_a_users_window_forgets_the_middle_and_shows_it() -> None:
    with LocalClient(LoadOptions(PATH, ctx=1024, window=128)) as client:
        finish(client.generate(ask("One two three four five six. " * 40)))
        group = client.view().groups[0]
        n_layers = client.model.plan.config.n_layers
        assert (group.window, group.name) == (128, f"{n_layers} layers, window 128 and the first block")
        assert group.states.startswith("rw") or group.states.startswith("cw")
