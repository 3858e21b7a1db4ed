"""Tools in plain chat: chosen with /tools, asked about in a line."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing.faces import Faces, type_in
from localrun_testing.fake_chat_server import FakeChatServer, calling, said
from localrun_testing.waiting import PATIENCE

from localrun.cli.line.input import ask_line, drop_typed_ahead

SAY = said("Done.")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("here")
    (folder / "notes.txt").write_text("milk")
    monkeypatch.chdir(folder)
    return folder


def talk(faces: Faces, server: FakeChatServer, monkeypatch: pytest.MonkeyPatch, *lines: str) -> str:
    """Type these lines, the answers to questions among them; gives what was told."""
    type_in(monkeypatch, *lines)
    monkeypatch.setattr("localrun.cli.tool_consent.ask_line", _typed(lines))
    code, _, err = faces.run("chat", "--server", server.url, "--no-history")
    assert code == 0
    return err


def _typed(lines: tuple[str, ...]) -> object:
    """Questions take the same lines as the chat does."""
    from localrun.cli.line import input as line_input

    return lambda prompt: line_input.ask_line(prompt)


def test_tools_are_off_until_they_are_chosen(
    faces: Faces, server: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    err = talk(faces, server, monkeypatch, "hi", "/tools calc, time", "hi", "/tools none", "hi", "/tools xyz")
    assert "rolling" not in err, "of a context that the server does not name"
    asked = [len(seen.body.get("tools", ())) for seen in server.seen if seen.body]
    assert asked == [0, 2, 0]
    assert "* calculator" in err
    assert "Tools, all of them off" in err
    assert "xyz means no tool" in err


def test_a_chat_without_tools_loads_none() -> None:
    code = "import sys, localrun.cli.chat; print([name for name in sys.modules if name.startswith('localrun.tools.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['localrun.tools.words']\n", "which says how a call is shown"


def test_a_folder_is_allowed_for_the_chat_that_is_open(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    err = talk(faces, server, monkeypatch, f"/tools allow {folder}", "hi", "/new", "/tools")
    _, before, after = err.split("Folders that they may read in:\n")
    assert before.startswith(f"  {folder}\n")
    assert after.startswith("  none yet\n")


def test_a_folder_is_asked_for_in_a_line(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = calling("read_file", path="notes.txt")
    server.replies = [read, SAY, read, SAY, read, SAY]
    err = talk(faces, server, monkeypatch, "/tools read", "1", "", "2", "chat", "3", "/tools")
    results = [seen.body["messages"][-1]["content"] for seen in server.seen if seen.body][1::2]
    assert results == ["the user did not allow this call", "milk", "milk"]
    assert err.count("The model wants to call read_file:") == 2, "the third time it is allowed for this chat"
    assert f"Folders that they may read in:\n  {folder}" in err


def test_always_is_listed_and_taken_back(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = calling("read_file", path="notes.txt")
    server.replies = [read, SAY]
    talk(faces, server, monkeypatch, "/tools read", "1", "always")
    server.replies = [read, SAY]
    err = talk(faces, server, monkeypatch, "/tools read", "1", "/tools", "/tools forget 2", "/tools forget 1")
    assert "The model wants" not in err
    assert f"Always allowed:\n  1  read_file {folder}" in err
    assert "has the number 2" in err
    assert err.rstrip().splitlines()[-1].startswith("/tools NAMES")
    server.replies = [read, SAY]
    assert "The model wants" in talk(faces, server, monkeypatch, "/tools read", "1", "n")


@pytest.mark.parametrize("answer", ["", "no", "x", "chat", "always", "1", "\x1b[A", "o no", "oh?"])
def test_a_command_is_run_for_a_clear_yes_only(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    server.replies = [
        calling("run_command", command="touch ran"),
        SAY,
        calling("run_command", command="touch once"),
        SAY,
    ]
    err = talk(faces, server, monkeypatch, "/tools run", "1", answer, "2", "once")
    assert f"  in {folder}\n  $ touch ran" in err
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "once"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no terminals in files")
def test_what_was_typed_before_a_question_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard, os.fdopen(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        keyboard.write(b"always\n")
        assert select.select([terminal], [], [], PATIENCE)[0]
        drop_typed_ahead()
        assert "typed before" in capsys.readouterr().err
        keyboard.write(b"no\n")
        assert ask_line("") == "no"
        drop_typed_ahead()
        assert capsys.readouterr().err == ""


def test_the_end_of_input_says_no(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [calling("run_command", command="touch ran"), SAY]
    talk(faces, server, monkeypatch, "/tools run", "1")
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_calls_are_cleaned_for_the_terminal(
    faces: Faces, server: FakeChatServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [calling("read_file", path="/x\x1b[2J\r\ny/notes"), SAY]
    err = talk(faces, server, monkeypatch, "/tools read", "1", "n")
    assert "\x1b" not in err
    assert "\r" not in err
