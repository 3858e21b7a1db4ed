"""A file of packed weights, whatever stands in its place."""

import os
from pathlib import Path

import pytest

from localrun.storage.packed_file import PackedFile


@pytest.mark.skipif(os.name != "posix", reason="windows has no such pipes")
def test_a_pipe_in_the_place_of_packed_weights_gives_way(tmp_path: Path) -> None:
    file = PackedFile(tmp_path / "a.packed", 4, b"s" * 32)
    os.mkfifo(file.path)
    assert not file.is_there()
    assert file.found() is None
    assert bytes(file.mapped(lambda: iter([memoryview(b"abcd")]))) == b"abcd"
    assert not file.is_damaged()
