"""A fingerprint stays while nothing that matters changes, and changes with all that does."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing.small_model import FULL

from localrun.base.resources import resource
from localrun.engine.fingerprint import SAMPLE_EVERY, fingerprint, identity_of
from localrun.formats.gguf import open_gguf

HUB_NAME = "ab" * 32


@pytest.fixture
def model(tmp_path: Path) -> Path:
    copy = tmp_path / "m.gguf"
    shutil.copyfile(resource("localrun/builtin/localrun-tiny.gguf"), copy)
    return copy


def flipped(path: Path, at: int) -> None:
    """Change one byte, and make the file look untouched."""
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_the_same_file_and_choices_give_the_same(model: Path) -> None:
    assert identity_of(open_gguf(model)) == identity_of(open_gguf(model))
    assert fingerprint("w", FULL, "cpu") == fingerprint("w", FULL, "cpu")


def test_every_choice_counts() -> None:
    choices = [(FULL, "cpu"), (replace(FULL, window=7), "cpu"), (FULL, "cuda"), ("cpu", FULL), (FULL, "cpu", "q8")]
    assert len({fingerprint("w", *choice) for choice in choices}) == len(choices)


def test_a_changed_sampled_tensor_a_changed_vocabulary_and_a_newer_file_count(model: Path) -> None:
    source = open_gguf(model)
    before = identity_of(source)
    in_order = sorted(source.tensors.values(), key=lambda info: info.offset)
    for at in (in_order[0].offset - 1000, in_order[0].offset, in_order[SAMPLE_EVERY].offset + 100):
        flipped(model, at)
        assert identity_of(source) != before, at
        flipped(model, at)
        assert identity_of(source) == before
    os.utime(model, (1, 1))
    assert identity_of(source) != before


def test_a_file_of_the_hubs_cache_is_known_by_its_name(model: Path, tmp_path: Path) -> None:
    blob = tmp_path / HUB_NAME
    model.rename(blob)
    model.symlink_to(blob)
    before = identity_of(open_gguf(model))
    os.utime(blob, (1, 1))
    assert identity_of(open_gguf(model)) == before
