"""Tools that read and find, attacked: paths and links that lead out, pipes, huge files, patterns without an end."""

import os
import threading

import pytest
from localrun_testing.tool_room import ToolRoom, is_searching, posix
from localrun_testing.waiting import until

from localrun.base.errors import UsageError
from localrun.tools import folders as folders_module
from localrun.tools.arguments import check_arguments
from localrun.tools.built_in.registry import chosen_tools
from localrun.tools.folders import open_inside
from localrun.tools.run_tool import run_tool
from localrun.tools.running_call import RunningCall, ToolError


def test_tools_are_named_by_how_they_begin(room: ToolRoom) -> None:
    known = list(room.tools.values())
    assert [tool.name for tool in chosen_tools(known, ["read", "gr", "time"])] == ["read_file", "grep", "time"]
    for wrong, says in (("", "no tool"), ("xyz", "no tool"), ("reed_file", "no tool")):
        with pytest.raises(UsageError, match=says):
            chosen_tools(known, [wrong])


def test_lines_of_a_file_are_read(room: ToolRoom) -> None:
    assert room.call("read_file", path="a.txt").text == "one\ntwo\nthree"
    assert room.call("read_file", path="a.txt", first_line=2, lines=1).text == "two\n(lines 2 to 2 of 3)"
    assert room.call("read_file", path="a.txt", first_line=9).text == "(a.txt has 3 lines)"
    assert room.call("list").text == "a.txt  14 bytes"
    assert not room.asked


@posix
def test_nothing_outside_is_read(room: ToolRoom) -> None:
    outside = room.folder.parent / "outside"
    (room.folder / "link.txt").symlink_to(outside / "secret.txt")
    (room.folder / "folder").symlink_to(outside)
    (room.folder / "loop").symlink_to("loop")
    room.answer = "no"
    ways = ["../outside/secret.txt", "link.txt", "folder/secret.txt", "/etc/passwd", "~/x", "/proc/self/environ"]
    ways += [f"/proc/self/root{outside}/secret.txt", f"/proc/self/cwd/../{outside}/secret.txt"]
    for path in ways:
        for name, more in (("read_file", {}), ("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "."})):
            assert room.permit(name, {"path": path, **more})[2] is None, (name, path)
    assert len(room.asked) == 4 * len(ways)
    assert room.call("read_file", path="loop").is_error
    for path in ("folder", "../outside"):  # and a tool that runs all the same reads nothing
        for name in ("list", "glob", "grep"):
            tool = room.tools[name]
            given = {"path": path, **({} if name == "list" else {"pattern": "secret*"})}
            arguments = check_arguments(tool.parameters, given)
            result = run_tool(tool, arguments, RunningCall(folders=[room.folder]))
            assert result.is_error
            assert "secret.txt" not in result.text
    assert "secret" not in room.call("grep", pattern="sec").text


@posix
@pytest.mark.parametrize("exchanged", ["file", "folder"])
def test_a_file_replaced_by_a_link_is_not_followed(room: ToolRoom, exchanged: str) -> None:
    outside = room.folder.parent / "outside"
    (room.folder / "sub").mkdir()
    path = room.folder / "sub" / "secret.txt"
    path.write_text("harmless")
    if exchanged == "file":
        path.unlink()
        path.symlink_to(outside / "secret.txt")
    else:
        (room.folder / "sub").rename(room.folder / "other")
        (room.folder / "sub").symlink_to(outside)
    with pytest.raises(ToolError, match="cannot be opened"):
        open_inside(path, [room.folder])  # a path that was real when it was looked at


@posix
def test_pipes_devices_and_folders_are_not_read(room: ToolRoom) -> None:
    os.mkfifo(room.folder / "pipe")
    (room.folder / "null").symlink_to("/dev/zero")
    assert "a pipe, not a file" in room.call("read_file", path="pipe").text
    assert "a folder" in room.call("read_file", path=".").text
    assert room.call("grep", pattern="x").text == "(no line matches)"
    room.call("read_file", path="/dev/zero")
    assert "/dev" in room.asked[-1].scope
    assert "pipe  (pipe)" in room.call("list").text


def test_files_that_are_too_large_or_no_text_are_refused(room: ToolRoom) -> None:
    with (room.folder / "huge.txt").open("wb") as file:
        file.truncate(1 << 40)
    (room.folder / "data.bin").write_bytes(b"\xff\xfe\0")
    assert "more than" in room.call("read_file", path="huge.txt").text
    assert "not a text file" in room.call("read_file", path="data.bin").text
    assert "missing.txt cannot be opened" in room.call("read_file", path="missing.txt").text
    for path in ("a" * 5000, "a/" * 3000):
        assert room.call("read_file", path=path).is_error
    with pytest.raises(ToolError, match="is no path"):
        room.permit("read_file", {"path": "\ud800"})


def test_where_folders_cannot_be_opened_names_are_checked(room: ToolRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders_module, "CAN_WALK", False)
    assert room.call("read_file", path="a.txt").text == "one\ntwo\nthree"
    with pytest.raises(ToolError, match="outside"):
        open_inside(room.folder.parent / "outside" / "secret.txt", [room.folder])


def test_a_folder_is_asked_for_once_in_a_chat(room: ToolRoom) -> None:
    outside = room.folder.parent / "outside"
    room.answer = "chat"
    assert room.call("read_file", path=str(outside / "secret.txt")).text == "secret"
    assert room.call("list", path=str(outside)).text == "secret.txt  6 bytes"
    assert [question.scope for question in room.asked] == [str(outside)]
    room.answer, room.folders.allowed = "once", [room.folder]
    assert room.call("read_file", path=str(outside / "secret.txt")).text == "secret"
    assert room.folders.allowed == [room.folder]


def test_files_and_lines_are_found(room: ToolRoom) -> None:
    (room.folder / "sub").mkdir()
    (room.folder / "sub" / "b.py").write_text("Two = 2\n")
    assert room.call("glob", pattern="**/*.py").text == os.path.join("sub", "b.py")
    assert room.call("glob", pattern="*.rs").text == "(no file fits)"
    found = room.call("grep", pattern="t(wo|hree)", ignore_case=True).text.splitlines()
    assert found == ["a.txt:2: two", "a.txt:3: three", f"{os.path.join('sub', 'b.py')}:1: Two = 2"]
    assert room.call("grep", pattern="two", path="a.txt").text == "a.txt:2: two"
    assert "is no regular expression" in room.call("grep", pattern="(").text


def test_a_pattern_that_takes_forever_is_ended(room: ToolRoom) -> None:
    (room.folder / "b.txt").write_text("a" * 40 + "!")
    tool, arguments, running = room.permit("grep", {"pattern": "^(a+)+$"})
    assert running is not None
    threading.Timer(0.3, running.cancel).start()  # as its time being up does
    assert run_tool(tool, arguments, running).is_error
    until(lambda: not is_searching())
