"""What tests keep is made once for each content."""

import os
from pathlib import Path

import pytest
from localrun_testing.kept import kept, remove_unused


def test_it_is_made_once_and_again_for_other_content(tmp_path: Path) -> None:
    made = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text(str(len(made)))

    def text(*content: object) -> str:
        return kept(make, *content, folder=tmp_path / "kept").read_text()

    assert [text("a", 1), text("a", 1), text("a", 2), text("a", 1)] == ["1", "1", "2", "1"]


def test_what_could_not_be_made_is_not_kept(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        path.write_text("half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        kept(broken, "a", folder=tmp_path)
    assert kept(lambda path: path.write_text("whole"), "a", folder=tmp_path).read_text() == "whole"


def test_a_folder_is_kept_like_a_file(tmp_path: Path) -> None:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "inside").write_text("x")

    first, again = (kept(make, "a", folder=tmp_path) for _ in range(2))
    assert first == again
    assert [path.name for path in first.iterdir()] == ["inside"]


def test_what_was_not_used_for_a_month_is_removed(tmp_path: Path) -> None:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "inside").write_text("x")

    old, used = kept(make, "old", folder=tmp_path), kept(lambda path: path.write_text("x"), "used", folder=tmp_path)
    for path in (old, used):
        os.utime(path.with_suffix(".lock"), (0, 0))
    kept(make, "used", folder=tmp_path)
    remove_unused(tmp_path)
    assert sorted(tmp_path.iterdir()) == [used, used.with_suffix(".lock")]
