"""A chat on its way back from the disk keeps nobody waiting but itself."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.waiting import PATIENCE, until

from localrun.base.events import Completion, Done, Prefill
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.interface import Generation
from localrun.client.local import LocalClient
from localrun.storage import restore
from localrun.storage import restore as restore_module
from localrun.storage.disk_cache import DiskCache

LONG = "Tell me about the KV cache. " * 40


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return tmp_path


def client() -> LocalClient:
    return LocalClient(LoadOptions(resource("localrun/builtin/localrun-tiny.gguf"), ctx=1024, disk_cache=1 << 30))


def ask(text: str, chat: str = "a", max_tokens: int = 12) -> Request:
    messages = ({"role": "user", "content": text},)
    return Request(messages, sampling=Sampling(temperature=0.0), max_tokens=max_tokens, chat_id=chat)


def end(generation: Generation) -> Completion:
    return next(event.completion for event in generation if isinstance(event, Done))


def readers() -> int:
    return sum(thread.name == "localrun-restore" for thread in threading.enumerate()) - restore.THREADS.n_idle


def test_a_load_says_that_nothing_can_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("LOCALRUN_HOME", str(home / "file"))
    with client() as one:
        assert [note for note in one.info.notes if note.startswith(f"cannot write to {home / 'file'}")]
        assert not [note for note in one.info.notes if "files changed" in note]


class Gate:
    """Reads from the disk as far as it is open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """For long prompts; the others share nothing with what is there."""
        self.may_read = threading.Semaphore(0)
        self.n_read = 0
        find = DiskCache.find

        def slowly(disk: DiskCache, missing: Any) -> Iterator[Any]:
            for found in find(disk, missing) if len(missing.token_ids) > 200 else ():
                assert self.may_read.acquire(timeout=10 * PATIENCE)
                self.n_read += 1
                yield found

        monkeypatch.setattr(DiskCache, "find", slowly)

    def open(self, n: int = 10_000) -> None:
        self.may_read.release(n)


@pytest.fixture
def first() -> Completion:
    """The answer to a chat that then was closed."""
    with client() as one:
        return end(one.generate(ask(LONG)))


def test_others_are_answered_while_a_chat_comes_from_the_disk(
    first: Completion, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor(1) as thread, client() as again:
        restoring = thread.submit(end, again.generate(ask(LONG)))
        until(lambda: again.model.engine.generations.handles)
        for n in range(4):
            assert end(again.generate(ask(f"{n}, hello!", "", 2))).completion_tokens > 0
        gate.open(2)
        until(lambda: gate.n_read == 2)
        assert end(again.generate(ask("Hello again!", "", 2))).completion_tokens > 0
        gate.open()
        second = restoring.result()
    assert second.token_ids == first.token_ids
    assert first.prompt_tokens is not None
    assert second.cache.restored_tokens > first.prompt_tokens - 10  # the others brought what all prompts begin with


def test_a_step_installs_a_few_blocks_at_most(first: Completion, monkeypatch: pytest.MonkeyPatch) -> None:
    inserted: list[int] = []
    insert = DiskCache.insert

    def counted(disk: DiskCache, ids: Any, found: Iterable[Any]) -> int:
        found = list(found)
        inserted.append(len(found))
        return insert(disk, ids, found)

    monkeypatch.setattr(DiskCache, "insert", counted)
    with client() as again:
        second = end(again.generate(ask(LONG)))
    assert second.cache.restored_tokens > 64 * restore_module.PORTION
    assert max(inserted) <= restore_module.PORTION


def test_one_that_is_cancelled_meanwhile_leaves_nothing_behind(
    first: Completion, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor(1) as thread, client() as again:
        restoring = again.generate(ask(LONG))
        ended = thread.submit(end, restoring)
        gate.open(1)
        until(lambda: gate.n_read == 1)
        restoring.cancel()
        assert ended.result().stop_reason == "cancelled"
        gate.open()
        until(lambda: readers() == 0)
        assert end(again.generate(ask(LONG))).token_ids == first.token_ids


def test_unreadable_blocks_are_computed(first: Completion, monkeypatch: pytest.MonkeyPatch) -> None:
    find = DiskCache.find

    def failing(disk: DiskCache, missing: Any) -> Iterator[Any]:
        for n, found in enumerate(find(disk, missing)):
            if n == 2:
                raise OSError("the disk is on fire")
            yield found

    monkeypatch.setattr(DiskCache, "find", failing)
    with client() as again:
        events = list(again.generate(ask(LONG)))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.completion.token_ids == first.token_ids
    assert done.completion.cache.restored_tokens == 128
    assert next(event.cached for event in events if isinstance(event, Prefill)) == 128
