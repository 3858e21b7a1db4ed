"""Reading bytes: what is missing, too large or without memory is an error of our family."""

from pathlib import Path

import pytest

from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.formats import files
from localrun.formats.files import map_range, open_regular, read_small, read_up_to, shown


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
        assert map_range(path, offset, n_bytes) == data[offset : offset + n_bytes]
    with pytest.raises(ModelFileError, match="the file changed after it was opened"):
        map_range(path, len(data) - 1, 2)


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
