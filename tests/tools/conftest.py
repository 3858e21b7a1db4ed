"""A folder that built-in tools may read, and one beside it that they may not."""

from pathlib import Path

import pytest
from localrun_testing.tool_room import ToolRoom


@pytest.fixture
def room(tmp_path: Path) -> ToolRoom:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return ToolRoom(inside)
