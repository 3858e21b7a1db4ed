"""Blocks that outlive their process: a chat that is reopened goes on as if it had never been closed."""

import time
from pathlib import Path

import pytest

from localrun.base.events import Completion, Done
from localrun.base.request import KVCodecName, LoadOptions, Message, Request, Sampling
from localrun.base.resources import resource
from localrun.cache.disk import Key
from localrun.cache.prefix import Node
from localrun.client.local import LocalClient
from localrun.engine.disk_cache import DiskCache

LONG = "Tell me about the KV cache. " * 12
CHAT: list[Message] = [{"role": "user", "content": LONG + "What is a KV cache?"}]
BUDGET = 1 << 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return tmp_path


def blocks(home: Path) -> list[Path]:
    return sorted((home / "cache" / "kv").rglob("*.kv"))


def client(
    kv: KVCodecName = "f16", disk_cache: int = BUDGET, prefix_cache: bool = True, ctx: int = 1024
) -> LocalClient:
    path = resource("localrun/builtin/localrun-tiny.gguf")
    return LocalClient(LoadOptions(path, ctx=ctx, kv=kv, disk_cache=disk_cache, prefix_cache=prefix_cache))


def ask(one: LocalClient, messages: list[Message]) -> Completion:
    request = Request(messages=tuple(messages), sampling=Sampling(temperature=0.0), max_tokens=24)
    return next(event.completion for event in one.stream(request) if isinstance(event, Done))


def next_turn(answer: Completion) -> list[Message]:
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
    assert second.restored_tokens >= kept
    assert second.cached_tokens == second.restored_tokens
    assert second.restore_ms > 0
    assert states.startswith("d" * (kept // 64))
    assert expected.cached_tokens == expected.restored_tokens == 0


def test_asking_the_same_again_after_a_restart_restores_to_the_last_token() -> None:
    with client() as one:
        first = ask(one, CHAT)
    with client() as again:
        second = ask(again, CHAT)
    assert second.token_ids == first.token_ids
    assert first.prompt_tokens is not None
    assert second.restored_tokens == first.prompt_tokens - 1


def test_damage_is_a_miss_and_the_answer_the_same(home: Path) -> None:
    with client() as one:
        first = ask(one, CHAT)
    for path in blocks(home):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    with client() as again:
        second = ask(again, CHAT)
    assert second.restored_tokens == 0
    assert second.token_ids == first.token_ids


def test_another_codec_another_context_use_nothing_of_it(home: Path) -> None:
    with client() as one:
        ask(one, CHAT)
    n_blocks = len(blocks(home))
    assert n_blocks > 0
    with client("q8") as other:
        assert ask(other, CHAT).restored_tokens == 0
    assert len(blocks(home)) > n_blocks


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


def test_an_idle_engine_saves_by_itself_and_then_rests(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[float] = []
    find = DiskCache._find_unsaved

    def counted(self: DiskCache) -> list[tuple[Node, Key]]:
        looked.append(time.monotonic())
        return find(self)

    monkeypatch.setattr("localrun.engine.engine.IDLE_SECONDS", 0.05)
    monkeypatch.setattr(DiskCache, "_find_unsaved", counted)
    with client() as one:
        ask(one, CHAT)
        until = time.monotonic() + 10
        while len(blocks(home)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(blocks(home)) >= 2
        time.sleep(0.5)
        n_looks = len(looked)
        time.sleep(0.5)
        assert len(looked) == n_looks, "nothing was computed: there is nothing to look for"
