"""What memory has no room for goes to the disk before it is lost; a disk that fails or is slow holds up nobody."""

import errno
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from localrun_testing.integer_model import (
    FULL,
    HCA,
    RECURRENT,
    IntegerModel,
    disk_cache,
    serve,
    sinking,
    text,
    windowed,
)
from localrun_testing.waiting import until

from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles
from localrun.storage.claims import read_claims
from localrun.storage.disk_cache import DiskCache

MODELS: dict[str, Callable[[], IntegerModel]] = {
    "full": lambda: IntegerModel([FULL, FULL], ["f16", "f16"], n_blocks=14),
    "coded": lambda: IntegerModel([FULL, FULL], ["q8", "q8"], n_blocks=14, ring_blocks=8),
    "windowed": lambda: IntegerModel([FULL, windowed(100)], ["q8", "f16"], n_blocks=14, window_blocks=8, ring_blocks=8),
    "recurrent": lambda: IntegerModel([RECURRENT, FULL], ["f16", "f16"], n_blocks=14),
    "compressed": lambda: IntegerModel(
        [windowed(90), HCA], ["f16", "f16"], n_blocks=14, window_blocks=8, ring_blocks=8
    ),
    "sinking": lambda: IntegerModel([sinking(320)], ["f16"], n_blocks=14),
}


@pytest.fixture
def opened() -> Iterator[list[DiskCache]]:
    """Caches that are closed in the end."""
    caches: list[DiskCache] = []
    yield caches
    for cache in caches:
        cache.close()


def written(disk: DiskCache) -> None:
    """Wait until the writer has nothing left to do."""
    until(lambda: disk.writer.n_written == disk.writer.n_given)


@pytest.mark.parametrize("kind", MODELS)
def test_evicted_blocks_are_restored_from_disk(kind: str, tmp_path: Path, opened: list[DiskCache]) -> None:
    """Nothing is ever idle here: all that is on the disk got there by eviction. Every token is checked."""
    model = MODELS[kind]()
    disk = disk_cache(model, tmp_path)
    opened.append(disk)
    chats = {f"chat{n}": text(330 + 17 * n, n) for n in range(6)}
    for chat, ids in chats.items():
        serve(model, ids, chat=chat, disk=disk)
        written(disk)
    assert disk.n_dropped == 0
    for chat, ids in chats.items():
        cache = serve(model, [*ids, *text(5, 99)], chat=chat, disk=disk)
        assert cache.reuse.n_tokens >= 320 // 64 * 64, (chat, cache.reuse)
        written(disk)


@pytest.mark.parametrize("kind", MODELS)
def test_random_chats_in_a_tight_memory_are_right_whatever_the_disk_loses(
    kind: str, tmp_path: Path, opened: list[DiskCache]
) -> None:
    rng = random.Random(kind)
    model = MODELS[kind]()
    disk = disk_cache(model, tmp_path, budget=30 * sum(disk_cache_sizes(model)))
    opened.append(disk)
    texts = {f"chat{n}": [*text(100, n % 2), *text(rng.randrange(1, 400), n)] for n in range(8)}
    for _ in range(60):
        chat = rng.choice(list(texts))
        if rng.random() < 0.3:
            paths = sorted(tmp_path.rglob("*.kv"))
            for path in rng.sample(paths, k=min(3, len(paths))):
                with suppress(FileNotFoundError):  # trimmed meanwhile
                    path.write_bytes(path.read_bytes()[: rng.randrange(400)])
        if rng.random() < 0.5:
            disk.save_one()
        serve(model, texts[chat], n_prompt=rng.randrange(1, len(texts[chat])), chat=chat, disk=disk)
        if len(texts[chat]) < 500:
            texts[chat] += text(rng.randrange(1, 80), rng.randrange(99))


def disk_cache_sizes(model: IntegerModel) -> list[int]:
    return [8 * 64 * len(group.layers) for group in model.store.group_of]


def test_blocks_without_a_stored_chat_never_reach_the_disk(tmp_path: Path, opened: list[DiskCache]) -> None:
    model = MODELS["full"]()
    disk = disk_cache(model, tmp_path)
    opened.append(disk)
    serve(model, text(330, 0), disk=disk)
    serve(model, text(330, 1), chat="kept", disk=disk)
    for n in range(2, 6):
        serve(model, text(330, n), disk=disk)
    while disk.save_one() is not None:
        pass
    written(disk)
    names = read_claims(disk.files.folder / "chats" / "kept")
    assert {path.stem for path in tmp_path.rglob("*.kv")} == names
    assert len(names) == 6


def test_a_slow_disk_drops_and_counts_blocks_without_blocking(
    tmp_path: Path, opened: list[DiskCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS["full"]()
    goes_on = threading.Event()
    save = BlockFiles.save

    def slow(self: BlockFiles, key: BlockKey, ids: Sequence[int], parts: Sequence[bytes], chats: Sequence[str]) -> int:
        assert goes_on.wait(60)
        return save(self, key, ids, parts, chats)

    monkeypatch.setattr(BlockFiles, "save", slow)
    monkeypatch.setattr("localrun.storage.block_writer.QUEUE_BYTES", 0)
    disk = disk_cache(model, tmp_path)
    opened.append(disk)
    for n in range(8):
        serve(model, text(330, n), chat=f"{n}", disk=disk)
    assert disk.n_dropped > 8
    assert disk.notes == (f"{disk.n_dropped} blocks were not stored: the disk is slower than the engine",)
    assert not list(tmp_path.rglob("*.kv"))
    goes_on.set()
    written(disk)
    assert len(list(tmp_path.rglob("*.kv"))) >= 4


FAILURES = [OSError(errno.EIO, "Input/output error"), PermissionError(13, "Permission denied"), RuntimeError("a bug")]


@pytest.mark.parametrize(("failure", "where"), [*product(FAILURES, ["save", "claim", "load"])])
def test_a_failing_disk_is_reported_without_blocking(
    failure: Exception, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS["full"]()
    disk = disk_cache(model, tmp_path)

    def fail(*_: object, **__: object) -> int:
        raise failure

    if where != "load":
        monkeypatch.setattr(BlockFiles, where, fail)
    else:  # as where the folder may not be looked into
        monkeypatch.setattr("localrun.storage.block_files.is_erased", fail)
    for n in range(8):
        serve(model, text(330, n), chat=f"{n}", disk=disk)
    until(lambda: disk.writer.problem or disk.writer.n_written == disk.writer.n_given)
    serve(model, text(330, 0), chat="another that claims what is there", disk=disk)
    until(lambda: disk.writer.problem)
    assert str(getattr(failure, "strerror", None) or failure) in disk.notes[0]
    serve(model, text(330, 9), chat="9", disk=disk)
    assert disk.save_one() is None
    disk.close()
    assert not disk.writer.is_alive


def test_a_full_disk_is_reported_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks once would never hear of what happens when the process ends."""
    usage = shutil.disk_usage(tmp_path)
    model = MODELS["full"]()
    for free, told in ((1, "nothing more is kept on disk: No space left on device"), (1 << 30, "")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        disk = disk_cache(model, tmp_path / "not there yet")
        disk.close()
        assert [note.split(": /")[0] for note in disk.notes] == [told] * bool(told)


def test_closing_does_not_wait_for_a_disk_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["full"]()
    hangs = threading.Event()
    monkeypatch.setattr("localrun.storage.block_writer.STALLED_SECONDS", 0.05)
    monkeypatch.setattr("localrun.storage.block_writer.QUEUE_BYTES", 0)
    monkeypatch.setattr(BlockFiles, "save", lambda *_, **__: hangs.wait(60) and 0)
    disk = disk_cache(model, tmp_path)
    for n in range(8):
        serve(model, text(330, n), chat=f"{n}", disk=disk)
    disk.close()
    assert disk.writer.is_alive
    hangs.set()
    until(lambda: not disk.writer.is_alive)


def test_closing_without_a_writer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a forked child, where only the forking thread goes on."""
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    monkeypatch.setattr("localrun.storage.block_writer.QUEUE_BYTES", 0)
    model = MODELS["full"]()
    disk = disk_cache(model, tmp_path)
    for n in range(8):
        serve(model, text(330, n), chat=f"{n}", disk=disk)
    disk.close()


def test_a_folder_that_is_none_any_more(tmp_path: Path) -> None:
    model = MODELS["full"]()
    disk = disk_cache(model, tmp_path / "kv")
    serve(model, text(330, 0), chat="a", disk=disk)
    if (tmp_path / "kv").exists():
        shutil.rmtree(tmp_path / "kv")
    (tmp_path / "kv").write_bytes(b"")
    disk.close()
    assert disk.writer.problem


def test_every_damaged_block_is_replaced_by_one_recompute(tmp_path: Path) -> None:
    ids = text(64 * 5 + 3)
    for damage in (lambda c: c + b"more", lambda c: c[:50], lambda c: b"", lambda c: c[:-1] + bytes([c[-1] ^ 1])):
        model = IntegerModel([FULL], ["f16"], n_blocks=40)
        disk = disk_cache(model, tmp_path)
        serve(model, ids, chat="a", disk=disk)
        disk.close()
        paths = sorted(tmp_path.rglob("*.kv"))
        assert len(paths) == 6
        before = {path: path.read_bytes() for path in paths}
        for path in paths:
            path.write_bytes(damage(before[path]))
        healing = IntegerModel([FULL], ["f16"], n_blocks=40)
        disk = disk_cache(healing, tmp_path)
        assert serve(healing, ids, chat="a", disk=disk).n_cached == 0
        disk.close()
        assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.kv"))} == before
