"""Reading bytes: what is missing, too large or without memory is an error of our family."""

import os
from pathlib import Path

import pytest

from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.formats import files
from localrun.formats.files import map_range, open_regular, read_small, read_up_to, shown, stamp_at


def test_reads_up_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(range(100)))
    with open_regular(path) as file:
        assert read_up_to(file, path, 10, 5) == bytes(range(10, 15))
        assert read_up_to(file, path, 95, 50) == bytes(range(95, 100))
        assert read_up_to(file, path, 500, 5) == b""


def test_a_view_of_a_file_begins_anywhere(tmp_path: Path) -> None:
    path, data = tmp_path / "f", bytes(range(251)) * 2000
    path.write_bytes(data)
    for offset, n_bytes in ((0, 10), (1, 5), (131_072, 3), (200_001, 150_000), (len(data) - 1, 1)):
        assert map_range(path, offset, n_bytes, stamp_at(path)) == data[offset : offset + n_bytes]
    opened = stamp_at(path)
    with pytest.raises(ModelFileError, match="the file changed after it was opened"):
        map_range(path, len(data) - 1, 2, opened)
    path.write_bytes(data[::-1])
    with pytest.raises(ModelFileError, match="the file changed after it was opened"):
        map_range(path, 0, 2, opened)


def test_whether_the_time_of_a_file_tells_the_next_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of one written a moment ago where times have no parts of a second, as on FAT."""
    path, second = tmp_path / "f", 1_000_000_000
    path.write_bytes(b"abc")
    monkeypatch.setattr("time.time_ns", lambda: 100 * second + 5)
    for written, is_settled in ((100 * second, False), (98 * second, True), (100 * second + 4, True)):
        os.utime(path, ns=(written, written))
        assert stamp_at(path).is_settled == is_settled
    os.utime(path, ns=(500 * second, 500 * second))
    assert stamp_at(path).is_settled, "the clock went back: that was not a moment ago"


def test_no_memory_is_not_a_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")

    def full(_: int) -> bytearray:
        raise MemoryError

    monkeypatch.setattr(files, "bytearray", full, raising=False)
    with open_regular(path) as file, pytest.raises(DoesNotFitError, match="no memory for 3 bytes of 'f'"):
        read_up_to(file, path, 0, 3)


def test_small_files_have_to_be_small(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    assert read_small(path, 100) == b"x" * 100
    with pytest.raises(ModelFileError, match="100 bytes, where at most 99") as caught:
        read_small(path, 99)
    assert caught.value.code == "TOO_BIG"


def test_text_in_messages_is_short_and_visible() -> None:
    assert shown("blk.0") == "'blk.0'"
    assert shown("\x1b[2J\u202e\ud800") == "'\\x1b[2J\\u202e\\ud800'"
    assert len(shown("x" * 10_000)) < 100
