"""Blocks that outlive their process: a chat that is reopened goes on as if it had never been closed."""

import os
import queue
import time
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from localrun_testing.waiting import until

from benchmarks.tiny_architectures import tiny_file
from localrun.base.errors import DoesNotFitError
from localrun.base.events import Completion, Done
from localrun.base.machine import Memory
from localrun.base.request import KVCodecName, LoadOptions, Request, RequestMessage, Sampling
from localrun.base.resources import resource
from localrun.cache.groups import Group
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.store import CacheStore
from localrun.client.local import LocalClient
from localrun.engine import load_plan
from localrun.fit.memory_plan import MemoryPlan
from localrun.fit.plan import LoadRequest, plan_load
from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles
from localrun.storage.block_writer import QUEUE_BYTES
from localrun.storage.disk_cache import DiskCache

LONG = "Tell me about the KV cache. " * 12
CHAT: list[RequestMessage] = [{"role": "user", "content": LONG + "What is a KV cache?"}]
BUDGET = 1 << 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return tmp_path


def blocks(home: Path) -> list[Path]:
    return sorted((home / "cache" / "kv").rglob("*.kv"))


def client(
    kv: KVCodecName = "f16", disk_cache: int = BUDGET, prefix_cache: bool = True, ctx: int | None = 1024
) -> LocalClient:
    path = resource("localrun/builtin/localrun-tiny.gguf")
    return LocalClient(LoadOptions(path, ctx=ctx, kv=kv, disk_cache=disk_cache, prefix_cache=prefix_cache))


def ask(one: LocalClient, messages: list[RequestMessage], chat: str = "a") -> Completion:
    request = Request(messages=tuple(messages), sampling=Sampling(temperature=0.0), max_tokens=24, chat_id=chat)
    return next(event.completion for event in one.generate(request) if isinstance(event, Done))


def next_turn(answer: Completion) -> list[RequestMessage]:
    return [*CHAT, {"role": "assistant", "content": answer.text}, {"role": "user", "content": "And in short?"}]


@pytest.mark.parametrize("kv", ["f16", "q8", "q4"])
def test_a_reopened_chat_computes_only_what_is_new_and_answers_the_same(kv: KVCodecName) -> None:
    with client(kv) as one:
        first = ask(one, CHAT)
    with client(kv) as again:
        second = ask(again, next_turn(first))
        states = again.view().groups[0].states
        assert again.view().disk_bytes > 0
    with client(kv, disk_cache=0, prefix_cache=False) as cold:
        expected = ask(cold, next_turn(first))
    assert second.token_ids == expected.token_ids
    assert first.prompt_tokens is not None
    kept = first.prompt_tokens // 64 * 64
    assert second.cache.restored_tokens >= kept
    assert second.cached_tokens == second.cache.restored_tokens
    assert second.timings.restore_ms > 0
    assert states.startswith("d" * (kept // 64))
    assert expected.cached_tokens == expected.cache.restored_tokens == 0


def test_asking_the_same_again_after_a_restart_restores_to_the_last_token() -> None:
    with client() as one:
        first = ask(one, CHAT)
    with client() as again:
        second = ask(again, CHAT)
    assert second.token_ids == first.token_ids
    assert first.prompt_tokens is not None
    assert second.cache.restored_tokens == first.prompt_tokens - 1


@pytest.mark.parametrize(
    ("kv", "name"), [*product(["f16", "q8"], ["gemma4", "gemma4-e2b", "gpt-oss", "nemotron-h", "deepseek-v3"])]
)
def test_layers_of_every_kind_come_back_after_a_restart(name: str, kv: KVCodecName, tmp_path: Path) -> None:
    """Windows, keys and values that other layers read, layers that keep nothing, and states."""
    path = tiny_file(name, tmp_path / "model.gguf")

    def client(**options: Any) -> LocalClient:
        return LocalClient(LoadOptions(path, ctx=1024, kv=kv, **options))

    with client(disk_cache=BUDGET) as one:
        first = ask(one, CHAT)
    with client(disk_cache=BUDGET) as again:
        same, kept = ask(again, CHAT), again.view()
        second = ask(again, next_turn(first))
    with client(disk_cache=0, prefix_cache=False) as cold:
        expected = ask(cold, next_turn(first))
    assert first.prompt_tokens is not None
    assert same.token_ids == first.token_ids
    assert same.cache.restored_tokens >= first.prompt_tokens // 64 * 64
    assert second.token_ids == expected.token_ids
    if name != "nemotron-h":  # the state that came back is in the block that was gone on with
        assert all("d" in group.states for group in kept.groups), "every group has some of it from the disk"


def test_damage_is_a_miss_and_the_answer_the_same(home: Path) -> None:
    with client() as one:
        first = ask(one, CHAT)
    for path in blocks(home):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    with client() as again:
        second = ask(again, CHAT)
    assert second.cache.restored_tokens == 0
    assert second.token_ids == first.token_ids


def test_another_codec_uses_nothing_of_it(home: Path) -> None:
    with client() as one:
        ask(one, CHAT)
    n_blocks = len(blocks(home))
    assert n_blocks > 0
    with client("q8") as other:
        assert ask(other, CHAT).cache.restored_tokens == 0
    assert len(blocks(home)) > n_blocks


PLENTY = 1 << 30  # bytes


def resumed(monkeypatch: pytest.MonkeyPatch, free: int, kv: KVCodecName = "auto") -> tuple[Completion, tuple[str, ...]]:
    """The chat, after a restart with so much memory; and what the user is told."""
    monkeypatch.setattr(load_plan, "memory", lambda: Memory(1 << 40, free))
    monkeypatch.setattr(load_plan, "resident", lambda: 1 << 28)
    path = resource("localrun/builtin/localrun-tiny.gguf")
    with LocalClient(LoadOptions(path, kv=kv, disk_cache=BUDGET, chat_id="a")) as one:
        return ask(one, CHAT), one.info.notes


def least_for(kv: KVCodecName, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of free memory in which the whole context fits with a codec."""
    asked: list[LoadRequest] = []

    def watched(request: LoadRequest) -> MemoryPlan:
        asked.append(request)
        return plan_load(request)

    with monkeypatch.context() as patch:
        patch.setattr(load_plan, "plan_with_sight", watched)
        client(kv, ctx=None, disk_cache=0).close()
    request = replace(asked[0], resident=1 << 28)

    def holds_all(free: int) -> bool:
        with suppress(DoesNotFitError):
            return plan_load(replace(request, free=free)).ctx == request.config.max_context
        return False

    return next(free for free in range(0, PLENTY, 1 << 18) if holds_all(free))


def test_a_chat_stays_in_its_codec_though_another_would_fit_better(monkeypatch: pytest.MonkeyPatch) -> None:
    first, notes = resumed(monkeypatch, PLENTY, kv="q8")
    assert not any("as before" in note for note in notes)
    again, notes = resumed(monkeypatch, PLENTY)
    assert again.kv_codec == first.kv_codec == "q8"
    assert again.cache.restored_tokens > 0
    assert again.token_ids == first.token_ids
    assert any("kept as q8, as before in this chat; --kv f16" in note for note in notes)
    named, notes = resumed(monkeypatch, PLENTY, kv="f16")
    assert (named.kv_codec, named.cache.restored_tokens) == ("f16", 0)
    assert not any("as before" in note for note in notes)
    newest, _ = resumed(monkeypatch, PLENTY)
    assert newest.kv_codec == "f16", "what was written last"
    assert newest.cache.restored_tokens > 0


def test_a_codec_that_no_longer_fits_is_changed_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = least_for("f16", monkeypatch)
    assert enough < least_for("f32", monkeypatch)
    first, _ = resumed(monkeypatch, PLENTY, kv="f32")
    assert first.kv_codec == "f32"
    again, notes = resumed(monkeypatch, enough)
    assert (again.kv_codec, again.cache.restored_tokens) == ("f16", 0)
    assert any("f32, as before in this chat, does not fit" in note for note in notes)


def test_other_weights_use_nothing_of_it_and_touched_ones_all(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(resource("localrun/builtin/localrun-tiny.gguf").read_bytes())
    options = LoadOptions(model, ctx=1024, disk_cache=BUDGET)
    with LocalClient(options) as one:
        first = ask(one, CHAT)
    os.utime(model, (1, 1))
    with LocalClient(options) as touched:
        assert ask(touched, CHAT).cache.restored_tokens + 1 == first.prompt_tokens
    content = bytearray(model.read_bytes())
    content[-12_345] ^= 1
    model.write_bytes(content)
    os.utime(model, (1, 1))
    with LocalClient(options) as changed:
        assert ask(changed, CHAT).cache.restored_tokens == 0


@pytest.mark.parametrize("kv", ["f16", "q8"])
def test_another_size_of_the_context_uses_all_of_it(kv: KVCodecName) -> None:
    """Under --ctx auto the context is another one each time, as memory is free; so is the window a chat may roll in."""
    with client(kv, ctx=1024) as one:
        first = ask(one, CHAT)
    for ctx in (1000, 777, None):
        with client(kv, ctx=ctx) as again:
            second = ask(again, CHAT)
        assert second.cache.restored_tokens + 1 == first.prompt_tokens
        assert second.token_ids == first.token_ids


@pytest.mark.parametrize("kv", ["f16", "q8"])
def test_a_chat_that_rolled_is_not_mistaken_for_one_in_another_window(kv: KVCodecName, home: Path) -> None:
    """What is computed after the first position that no longer sees all depends on the window, and only that."""
    long_chat: list[RequestMessage] = [{"role": "user", "content": LONG * 2}]

    def rolled(ctx: int, disk_cache: int = BUDGET) -> Completion:
        with client(kv, ctx=ctx, disk_cache=disk_cache, prefix_cache=disk_cache > 0) as one:
            request = Request(
                messages=tuple(long_chat),
                sampling=Sampling(temperature=0.0),
                max_tokens=24,
                overflow="roll",
                chat_id="rolled",
            )
            return next(event.completion for event in one.generate(request) if isinstance(event, Done))

    expected = {ctx: rolled(ctx, disk_cache=0).token_ids for ctx in (128, 192, 1024)}
    for ctx in (128, 192, 1024):
        found = rolled(ctx)
        assert (found.prompt_tokens or 0) > 192
        assert found.token_ids == expected[ctx]
        assert found.cache.restored_tokens in {128: (0,), 192: range(64, 129), 1024: range(128, 193)}[ctx]
    for ctx in (128, 192, 1024):
        again = rolled(ctx)
        assert again.token_ids == expected[ctx]
        assert again.cache.restored_tokens + 1 == again.prompt_tokens


def test_a_context_too_small_for_all_that_is_kept_takes_what_it_holds() -> None:
    with client() as one:
        first = ask(one, CHAT)
    assert first.prompt_tokens is not None
    with client(ctx=first.prompt_tokens + 30) as small:
        assert ask(small, CHAT).token_ids == first.token_ids


def test_nothing_is_written_unless_asked_for(home: Path) -> None:
    with client(disk_cache=0) as one:
        ask(one, CHAT)
    assert blocks(home) == []


def test_the_budget_holds(home: Path) -> None:
    with client(disk_cache=300_000) as one:
        ask(one, CHAT)
        ask(one, [{"role": "user", "content": "Something else. " * 40}])
    assert 0 < sum(path.stat().st_size for path in blocks(home)) <= 300_000


def test_a_folder_that_cannot_be_written_costs_nothing_but_speed(home: Path) -> None:
    (home / "cache").mkdir()
    (home / "cache" / "kv").write_bytes(b"not a folder")
    with client() as one:
        assert ask(one, CHAT).completion_tokens > 0


def test_blocks_are_written_while_idle_or_when_the_queue_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def save(disk: BlockFiles, key: BlockKey, *_: object) -> int:
        written.append(key.own)
        return 1

    monkeypatch.setattr(BlockFiles, "save", save)
    store = CacheStore([Group((0,), AttentionCache(1, 8, 8))], [100])
    tier = BlockFiles(home / "kv", "f", [QUEUE_BYTES // 8])
    cache = DiskCache(store, tier, lambda pool, block: b"x", lambda pool, block, data: None, BUDGET)
    cache.writer.last_read = time.monotonic() + 1000  # as if all that time somebody read
    ids = list(range(64 * 12))
    sequence = store.open(ids, None, "a")
    store.extend(sequence, 0, len(ids))
    store.close(sequence, ids)
    assert cache.save_one() == 0.0
    time.sleep(0.1)
    assert written == []
    until(lambda: cache.save_one() is None)
    assert 0 < len(written) < 12, "eight blocks fill the queue"
    cache.writer.last_read = 0.0
    until(lambda: len(written) == 12)
    cache.close()


def test_an_idle_engine_saves_by_itself_and_then_rests(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []  # for a request, each with its limit

    class Inbox(queue.SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            waits.append(timeout)
            return super().get(block, timeout)

    monkeypatch.setattr("localrun.engine.engine.queue", SimpleNamespace(SimpleQueue=Inbox, Empty=queue.Empty))
    monkeypatch.setattr("localrun.engine.engine.IDLE_SECONDS", 0.05)
    with client() as one:
        ask(one, CHAT)
        until(lambda: len(blocks(home)) >= 2)
        until(lambda: waits[-1] is None)  # there is nothing more to look for
