"""Weights that memory holds stay packed on disk for the next start: the same answers, nothing read again, bounded."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.cli import localrun
from localrun_testing.kept_weights import keep_packed_weights
from localrun_testing.tiny_models import save

from localrun.backends.cpu.bindings import CpuCalls
from localrun.backends.cpu.library import load_library
from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.resources import resource
from localrun.engine import packed_weights
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import SamplerSettings
from localrun.formats.detect import open_model_file
from localrun.model.weight_sizes import allocated_bytes
from localrun.storage.identity import Identity, known_identity
from localrun.storage.label import Label, write_label
from localrun.storage.packed_file import FORM, PackedFile
from localrun.storage.weight_store import WeightStore, erase_packed
from localrun.storage.weight_writer import WeightWriter

BUILTIN = resource("builtin/localrun-tiny.gguf")
MUCH = 100 << 20  # bytes of disk, more than a model here takes
pytestmark = pytest.mark.skipif(load_library() is None, reason="weights are mapped by the native library")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "home"))
    keep_packed_weights(monkeypatch)
    return tmp_path / "home" / "cache" / "weights"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    copy = tmp_path / "model.gguf"
    copy.write_bytes(BUILTIN.read_bytes())
    return copy


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every slab that is packed from now on."""
    slabs: list[int] = []
    pack = CpuCalls.pack

    def count(self: CpuCalls, matrix: object, gguf_id: int, raw: int, first_row: int, n_rows: int) -> None:
        slabs.append(n_rows)
        pack(self, matrix, gguf_id, raw, first_row, n_rows)  # type: ignore[arg-type]

    monkeypatch.setattr(CpuCalls, "pack", count)
    return slabs


def start(path: Path, limit: int = MUCH, progress: ProgressCallback = lambda done, total: None) -> LoadedModel:
    return load(LoadOptions(path, threads=2, ctx=256, kv="f16", packed_weights=limit), progress)


def wait_for_files(loaded: LoadedModel) -> LoadedModel:
    if loaded.kept.thread.ident is not None:
        loaded.kept.thread.join()
    return loaded


def answer(loaded: LoadedModel) -> list[int]:
    prompt = tuple(n * 7 % min(loaded.plan.config.vocab_size, 300) for n in range(100))
    request = GenerationRequest(prompt, 40, frozenset(), SamplerSettings(temperature=0.0), seed=0)
    *_, last = loaded.engine.submit(request)
    assert isinstance(last, Finished)
    wait_for_files(loaded).close()
    return last.sequence.token_ids


def changed_bytes(path: Path) -> bytes:
    """Of the built-in model with another matrix."""
    data = bytearray(path.read_bytes())
    info = open_model_file(path).tensors["blk.5.ffn_down.weight"]
    for at in range(info.offset + 2, info.offset + info.nbytes, 34):
        data[at] ^= 0x7F
    return bytes(data)


def names(home: Path) -> set[str]:
    return {file.name for file in home.glob("*/*.packed")}


@pytest.mark.parametrize("kind", ["builtin", "qwen3", "qwen3-moe", "gemma4-moe", "nemotron-h-moe"])
def test_the_next_start_packs_nothing_and_answers_the_same(
    kind: str, path: Path, tmp_path: Path, packed: list[int]
) -> None:
    path = path if kind == "builtin" else save(kind, tmp_path)
    first = wait_for_files(start(path))
    assert sum(packed) > 0
    packed.clear()
    done: list[tuple[int, int]] = []
    second = start(path, progress=lambda *at: done.append(at))
    assert packed == []
    assert done[-1][0] == done[-1][1], "what is not read again is not waited for"
    assert second.plan.weights_bytes == first.plan.weights_bytes == allocated_bytes(second.model.weights)
    assert second.info.mapped_bytes == 0
    assert second.kept.thread.ident is None, "nothing is left to write"
    assert answer(second) == answer(first)


def test_one_that_ends_early_leaves_whole_matrices_and_the_next_goes_on(
    home: Path, path: Path, packed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = PackedFile._write
    written: set[str] = set()

    def end_after_three(file: PackedFile, pieces: Iterator[memoryview]) -> None:
        if len(written) == 3:
            first.kept.close()
        write(file, pieces)
        written.add(file.path.name)

    with monkeypatch.context() as patch:
        patch.setattr(WeightWriter, "write", lambda _: None)
        first = start(path)
    with monkeypatch.context() as patch:
        patch.setattr(PackedFile, "_write", end_after_three)
        first.kept.write()
        expected = answer(first)
    assert names(home) == written
    assert len(written) == 3
    assert not list(home.glob("*/*.tmp")), "nothing half written is left"
    n_rows = sum(packed)
    packed.clear()
    assert answer(start(path)) == expected
    assert 0 < sum(packed) < n_rows
    assert names(home) == {f"{name}.packed" for name in first.kept.matrices}


def test_those_of_a_file_that_changed_go(home: Path, path: Path) -> None:
    expected = answer(start(path))
    path.write_bytes(changed_bytes(path))
    changed = answer(start(path, limit=0))
    assert changed != expected
    assert answer(start(path)) == changed
    assert answer(start(path)) == changed
    assert len(list(home.glob("*/label.json"))) == 1


@pytest.mark.parametrize("disk_cache", [0, MUCH])
def test_a_file_that_is_replaced_while_it_loads_answers_for_itself_next_time(
    home: Path, path: Path, tmp_path: Path, disk_cache: int
) -> None:
    """What was read of the old file is kept under its own name, or not at all."""
    fresh = tmp_path / "fresh.gguf"
    fresh.write_bytes(changed_bytes(path))
    expected = answer(start(fresh, limit=0))

    def replace_at_the_end(done: int, total: int) -> None:
        if done == total and fresh.exists():
            fresh.replace(path)

    options = LoadOptions(path, threads=2, ctx=256, kv="f16", packed_weights=MUCH, disk_cache=disk_cache)
    assert answer(load(options, replace_at_the_end)) != expected
    assert disk_cache or names(home) == set(), "which file it was is found out afterwards"
    assert [answer(start(path)) for _ in range(3)] == [expected] * 3
    assert names(home) != set()


def test_it_takes_no_more_of_the_disk_than_it_may(home: Path, path: Path) -> None:
    answer(start(path))
    (own,) = WeightStore(home.parent).models()
    erase_packed([own])
    for name, age in (("a", 3), ("b", 2), ("c", 1)):
        (home / name).mkdir(parents=True)
        write_label(home / name, Label(form=FORM))
        (home / name / "output.packed").write_bytes(bytes(1 << 20))
        os.utime(home / name, (time.time() - age, time.time() - age))
    answer(start(path, limit=own.nbytes - (1 << 16)))
    assert {folder.name for folder in home.iterdir() if folder.is_dir()} >= set("abc"), "what is too much is not begun"
    assert not own.folder.exists() or not list(own.folder.glob("*.packed"))
    answer(start(path, limit=own.nbytes + (1 << 20)))
    assert len(list(own.folder.glob("*.packed"))) == own.n_files
    assert {name for name in "abc" if (home / name).exists()} == {"c"}, "the oldest go, no more than must"
    answer(start(path, limit=own.nbytes))
    assert not (home / "c").exists(), "a limit that was lowered holds for what is there"


def test_packed_weights_are_not_kept_when_disabled(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LoadOptions(path).packed_weights == 0, "who loads a model by hand gets no files unasked"
    answer(start(path, limit=0))
    for name, value in (
        ("memory_nodes", lambda: [[0], [1]]),
        ("writable_folder", lambda _: None),
        ("LEAST_BYTES", 1 << 30),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(packed_weights, name, value)
            answer(start(path))
    assert not home.exists()


def test_a_full_disk_does_not_stop_a_load(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: memoryview) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    expected = answer(start(path, limit=0))
    monkeypatch.setattr("localrun.storage.packed_file._write_all", full)
    assert answer(start(path)) == expected
    assert not list(home.glob("*/*.packed")) + list(home.glob("*/*.tmp"))


def test_weights_are_known_at_once_when_they_were_read_before(path: Path) -> None:
    source = open_model_file(path)
    assert known_identity(source) == ""
    found = Identity(source).result()
    assert known_identity(source) == found != ""
    path.write_bytes(path.read_bytes())
    assert known_identity(source) == "", "it was written to"


def test_the_setting_0_removes_what_is_there(home: Path, path: Path) -> None:
    answer(start(path))
    (row,) = localrun("cache", "list", "--json", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]).json
    assert (row["model"], row["blocks"]) == ("model", len(names(home)))
    told = localrun("config", "packed_weights", "0", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]).err
    assert "removed" in told
    assert "of packed weights" in told
    assert names(home) == set()


def test_what_another_process_is_writing_is_erased(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that appears between a look at the folder and its end would keep it there, with a model that is gone."""
    wait_for_files(start(path))
    store = WeightStore(home.parent)
    (own,) = store.models()
    unlink = os.unlink

    def unlink_while_another_writes(name: str, **named: Any) -> None:
        monkeypatch.setattr(os, "unlink", unlink)
        with suppress(FileNotFoundError):
            (own.folder / "late.packed").touch()
        unlink(name, **named)

    monkeypatch.setattr(os, "unlink", unlink_while_another_writes)
    erase_packed([own])
    assert store.models() == []
    assert not own.folder.exists()
    erase_packed([own])  # by another process, too
