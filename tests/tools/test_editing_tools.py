"""Tools that change files: what is shown is what is written, or nothing is."""

import os
import stat

import pytest
from localrun_testing.tool_room import ToolRoom, posix

from localrun.base.request import Json
from localrun.tools.built_in.hunk import hunk
from localrun.tools.running_call import ToolError


def test_a_difference_is_shown_and_written(room: ToolRoom) -> None:
    result = room.call("edit_file", path="a.txt", old_text="two", new_text="2")
    assert not result.is_error
    assert (room.folder / "a.txt").read_text() == "one\n2\nthree\n"
    (question,) = room.asked
    assert question.choices == ("once", "no")
    assert question.preview.splitlines()[2:] == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    room.call("write_file", path="new.txt", text="a\nb")
    assert room.asked[-1].preview.splitlines()[2:] == ["@@ -1,0 +1,2 @@", "+a", "+b", "\\ no line break at the end"]
    assert (room.folder / "new.txt").read_text() == "a\nb"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("edit_file", {"old_text": "four", "new_text": ""}, "is not in"),
        ("edit_file", {"old_text": "o", "new_text": ""}, "2 times"),
        ("edit_file", {"old_text": "", "new_text": "x"}, "is not in"),
        ("edit_file", {"old_text": "two", "new_text": "two"}, "are the same"),
        ("edit_file", {"old_text": "two", "new_text": "\x1b[2J"}, "control characters"),
        ("edit_file", {"path": "none.txt", "old_text": "a", "new_text": "b"}, "there is no file"),
        ("write_file", {"text": "x"}, "was not read"),
        ("write_file", {"path": "no/folder/x", "text": "x"}, "there is no folder"),
        ("write_file", {"path": ".", "text": "x"}, "not a file"),
    ],
)
def test_an_edit_that_cannot_be_done_is_not_asked_about(room: ToolRoom, name: str, arguments: Json, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        room.permit(name, {"path": "a.txt", **arguments})
    assert not room.asked
    assert (room.folder / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_file_that_changed_is_not_written(room: ToolRoom) -> None:
    path = room.folder / "a.txt"
    room.call("read_file", path="a.txt")
    path.write_text("one\ntwo\nfour\n")
    with pytest.raises(ToolError, match="changed since it was read"):
        room.permit("edit_file", {"path": "a.txt", "old_text": "two", "new_text": "2"})
    room.call("read_file", path="a.txt")
    room.meanwhile = lambda: path.write_text("two\nand more\n")
    assert "changed since" in room.call("edit_file", path="a.txt", old_text="two", new_text="2").text
    assert path.read_text() == "two\nand more\n"


@posix
def test_writing_keeps_rights_line_ends_and_other_names(room: ToolRoom) -> None:
    path, other = room.folder / "a.txt", room.folder.parent / "outside" / "hard.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o750)
    os.link(path, other)
    room.call("edit_file", path="a.txt", old_text="one\ntwo", new_text="1\n2")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert other.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n", "the other name has the other file"
    assert sorted(one.name for one in room.folder.iterdir()) == ["a.txt"], "nothing half written is left"


@posix
def test_a_full_disk_leaves_the_file_as_it_was(room: ToolRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("localrun.tools.folders.os.fsync", full)
    assert "No space left" in room.call("edit_file", path="a.txt", old_text="two", new_text="2").text
    assert [one.name for one in room.folder.iterdir()] == ["a.txt"]
    assert (room.folder / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_hunk_has_all_lines_between_the_changes() -> None:
    before, after = "".join(f"{n}\n" for n in range(20)), "".join(f"{n}\n" for n in range(20) if n not in (8, 10))
    lines = hunk("f", before, after).splitlines()
    assert lines[:3] == ["--- f", "+++ f", "@@ -6,9 +6,7 @@"]
    assert lines[3:] == [*[" 5", " 6", " 7", "-8", "-9", "-10", "+9", " 11", " 12", " 13"]]
    assert hunk("f", "a\n", "a\n").splitlines()[2:] == ["@@ -1,1 +1,1 @@", " a"]
