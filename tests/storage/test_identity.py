"""A fingerprint stays while nothing that matters changes, and changes with all that does."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing.full_disk import full_disk
from localrun_testing.small_model import FULL
from localrun_testing.tiny_models import save

from localrun.base.resources import resource
from localrun.formats.files import stamp_at
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.storage import identity
from localrun.storage.identity import CHUNK_BYTES, Identity, fingerprint, known_identity

HUB_NAME = "ab" * 32


@pytest.fixture
def model(tmp_path: Path) -> Path:
    copy = tmp_path / "m.gguf"
    shutil.copyfile(resource("localrun/builtin/localrun-tiny.gguf"), copy)
    return copy


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files that were read through."""
    files: list[Path] = []
    checksum = identity.checksum

    def counted(file: Path) -> str:
        files.append(file)
        return checksum(file)

    monkeypatch.setattr(identity, "checksum", counted)
    return files


def flipped(path: Path, at: int) -> None:
    """Change one bit, and make the file look untouched."""
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def of(path: Path) -> str:
    found = Identity(open_gguf(path)).result()
    assert found
    return found


def test_the_same_choices_give_the_same_and_every_choice_counts() -> None:
    assert fingerprint("w", FULL, "cpu") == fingerprint("w", FULL, "cpu")
    choices = [(FULL, "cpu"), (replace(FULL, window=7), "cpu"), (FULL, "cuda"), ("cpu", FULL), (FULL, "cpu", "q8")]
    assert len({fingerprint("w", *choice) for choice in choices}) == len(choices)


def test_every_byte_counts_though_size_and_time_stay(model: Path) -> None:
    """Whatever stands in the header, in any tensor, at the borders of chunks and at the end."""
    source, before = open_gguf(model), of(model)
    size = model.stat().st_size
    tensors = sorted(source.tensors.values(), key=lambda info: info.offset)
    places = {info.offset + info.nbytes // 3 for info in tensors} | {tensors[0].offset - 1000, size - 1}
    places |= {n for border in range(CHUNK_BYTES, size, CHUNK_BYTES) for n in (border - 1, border)}
    seen = {before}
    for at in sorted(places):
        flipped(model, at)
        found = Identity(replace(source, stamps={model: stamp_at(model)})).result()
        assert found not in seen, at
        seen.add(found)
        flipped(model, at)
    assert of(model) == before


def test_a_touched_moved_or_copied_file_is_the_same(model: Path, tmp_path: Path) -> None:
    before = of(model)
    os.utime(model, (1, 1))
    assert of(model) == before
    model.rename(tmp_path / "other.gguf")
    assert of(tmp_path / "other.gguf") == before


def test_a_file_is_read_once_and_again_when_it_may_have_changed(
    model: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = of(model)
    of(model)
    assert len(read) == 2, "written a moment ago: its times do not tell yet whether it changes"
    now = time.time_ns()
    monkeypatch.setattr("localrun.storage.identity.time.time_ns", lambda: now + 10**10)
    for _ in range(3):
        assert of(model) == before
    assert len(read) == 3
    flipped(model, 100_000)
    assert of(model) != before
    flipped(model, 100_000)
    assert of(model) == before
    assert len(read) == 5


def renamed(path: Path, at: int) -> None:
    """Put another file in its place, of the same size and time."""
    fresh = path.with_name("fresh")
    shutil.copy2(path, fresh)
    flipped(fresh, at)
    fresh.replace(path)


@pytest.mark.parametrize("change", [flipped, renamed])
@pytest.mark.parametrize("at_name_of_the_hub", [False, True])
def test_a_file_changed_since_it_was_opened_has_no_identity(
    model: Path, change: Callable[[Path, int], None], at_name_of_the_hub: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was read of the old one is kept under the name of the new, though that is known already."""
    monkeypatch.setattr(identity, "SETTLED_SECONDS", -1.0)
    if at_name_of_the_hub:
        model = model.rename(model.with_name(HUB_NAME))
    opened = open_gguf(model)
    assert Identity(opened).result() == known_identity(opened) != ""
    change(model, 100_000)
    assert of(model) == known_identity(open_gguf(model)) != ""
    assert Identity(opened).result() == known_identity(opened) == ""


def test_one_of_several_files_that_changed_is_enough(tmp_path: Path) -> None:
    """Shards, and what tells how ids come about; also where one file of a folder was asked for."""
    folder = save("qwen3", tmp_path)
    (weights,) = folder.glob("*.safetensors")
    found = Identity(open_safetensors(folder)).result()
    assert Identity(open_safetensors(weights)).result() == found
    for name in ("config.json", "tokenizer.json", weights.name):
        opened = open_safetensors(weights)
        os.utime(folder / name, (1, 1))
        assert Identity(opened).result() == "", name
        assert Identity(open_safetensors(weights)).result() == found, name


def test_with_coarse_clocks_a_fresh_file_has_no_identity(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns() // 10**9 * 10**9
    os.utime(model, ns=(now, now))
    monkeypatch.setattr("localrun.formats.files.time.time_ns", lambda: now + 10**6)
    assert Identity(open_gguf(model)).result() == ""
    monkeypatch.setattr("localrun.formats.files.time.time_ns", lambda: now + 10**10)
    assert Identity(open_gguf(model)).result() != ""


def test_a_file_that_changes_while_read_has_no_identity(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, checksum = open_gguf(model), identity.checksum

    def meddled(file: Path) -> str:
        found = checksum(file)
        time.sleep(0.02)
        flipped(file, 100_000)
        return found

    monkeypatch.setattr(identity, "checksum", meddled)
    assert Identity(source).result() == ""


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 3}', '{"x": [1, 2]}', "null"])
def test_a_damaged_identity_file_is_ignored(model: Path, home: Path, content: str) -> None:
    before = of(model)
    (home / "cache").mkdir(parents=True, exist_ok=True)
    (home / "cache" / "weights.json").write_text(content)
    assert of(model) == before


@pytest.mark.skipif(os.name != "posix", reason="windows has no such limits")
def test_a_full_disk_leaves_nothing_behind(model: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    monkeypatch.setattr("localrun.storage.identity.time.time_ns", lambda: now + 10**10)
    with full_disk():
        assert of(model)
    assert [path.name for path in (home / "cache").iterdir()] == ["state.lock"]
    assert of(model)
    assert (home / "cache" / "weights.json").stat().st_size


def test_a_file_of_the_hubs_cache_is_known_by_its_name(model: Path, tmp_path: Path, read: list[Path]) -> None:
    blob = tmp_path / HUB_NAME
    model.rename(blob)
    model.symlink_to(blob)
    before = of(model)
    os.utime(blob, (1, 1))
    assert of(model) == before
    assert not read
