"""Merges of large SentencePiece vocabularies are kept on disk; a damaged file is as good as none."""

import os
from pathlib import Path

import pytest
from localrun_testing.full_disk import full_disk
from localrun_testing.vocabularies import sentencepiece

from localrun.text import spm_merges
from localrun.text.tokenizer import tokenizer_from_gguf

IDS = tokenizer_from_gguf(sentencepiece()).encode("hello hell he")


@pytest.fixture
def stored(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of merges, after a first run that wrote it."""
    monkeypatch.setattr(spm_merges, "_WORTH_KEEPING", 1)
    assert tokenizer_from_gguf(sentencepiece()).encode("hello hell he") == IDS
    (path,) = (home / "cache" / "merges").iterdir()
    return path


def test_small_vocabularies_write_nothing(home: Path) -> None:
    tokenizer_from_gguf(sentencepiece())
    assert not home.exists()


def test_the_second_time_they_are_read(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(spm_merges, "_find_pairs", never)
    assert tokenizer_from_gguf(sentencepiece()).encode("hello hell he") == IDS


def test_other_scores_are_another_vocabulary(stored: Path) -> None:
    scores = [0.0] * 259 + [float(-i) for i in range(10)]
    assert tokenizer_from_gguf(sentencepiece(scores=scores)).encode("hello") != IDS
    assert len(list(stored.parent.iterdir())) == 2


def test_every_damaged_byte_and_every_cut_is_noticed(stored: Path) -> None:
    whole = stored.read_bytes()
    for i in range(len(whole)):
        for damaged in (whole[:i], whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :]):
            stored.write_bytes(damaged)
            assert spm_merges._read(stored, 269) is None
    stored.write_bytes(whole)
    assert spm_merges._read(stored, 269)
    assert spm_merges._read(stored, 5) is None  # ids of some larger vocabulary


def test_a_damaged_file_is_replaced(stored: Path) -> None:
    whole = stored.read_bytes()
    stored.write_bytes(b"")
    assert tokenizer_from_gguf(sentencepiece()).encode("hello hell he") == IDS
    assert stored.read_bytes() == whole


@pytest.mark.skipif(os.name != "posix", reason="windows has no such limits")
def test_a_full_disk_leaves_nothing_behind(stored: Path) -> None:
    stored.unlink()
    left = stored.parent / "tmpabcd_123"  # by an earlier version
    left.touch()
    os.utime(left, (0, 0))
    with full_disk():
        assert tokenizer_from_gguf(sentencepiece()).encode("hello hell he") == IDS
    assert not list(stored.parent.iterdir())


def test_nothing_can_be_written(stored: Path) -> None:
    stored.unlink()
    stored.parent.rmdir()
    stored.parent.write_text("in the way")
    assert tokenizer_from_gguf(sentencepiece()).encode("hello hell he") == IDS
    assert stored.parent.read_text() == "in the way"
