"""An error that nobody has foreseen: one line after the terminal is as it was, no word of a chat, and nothing lost."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, views
from localrun_testing.pilots import drive, until
from localrun_testing.waiting import until as wait_until
from textual.pilot import Pilot

from localrun.base.content import FilePart, TextPart
from localrun.base.paths import folder
from localrun.chat.images import ImageShelf
from localrun.chat.journal import ChatStore
from localrun_tui.state.draft import keep_draft, take_draft

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals on Windows", allow_module_level=True)

import pty
import termios

# The app with an engine that answers without an end, and an error behind the key of the inspector.
APP = """
import asyncio, sys
from localrun_testing.chat_app import CHOICE
from localrun_testing.scripted_client import Script, ScriptedClient, opener
from localrun_tui import start
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.screens.chat.message_document import MessageDocument
from localrun_tui.terminal import Terminal

def fail(*arguments):
    said = "a SECRET that was said"
    raise ValueError(f"no {said}")

async def fail_later():
    fail()

WAYS = {
    "handler": lambda screen: fail(),
    "worker": lambda screen: screen.run_worker(fail_later()),
    "timer": lambda screen: screen.set_timer(0.01, fail),
    "callback": lambda screen: asyncio.get_running_loop().call_soon(fail),
    "layout": lambda screen: [setattr(MessageDocument, "lines", fail), screen.transcript.views[-1].changed()],
    "keys": lambda screen: [screen.notify("the next key"), setattr(Terminal, "process_message", fail)],
    "exit": lambda screen: [setattr(Terminal, "stop_application_mode", fail), screen.app.exit()],
    "never": lambda screen: screen.app.exit(),
}
ChatScreen.action_inspector = WAYS[sys.argv.pop(1)]
scripted = opener(ScriptedClient([Script("a SECRET answer " * 9, delay=0.01, never_ends=True)]))
start.open_client = lambda choice, progress, *sharing: scripted(choice, progress)
start._first_choice = lambda model, precision, named: CHOICE
from localrun.__main__ import main
main()
"""
INSPECTOR = b"\x07"
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")


class Running:
    """The app in a terminal of its own; `shown` is all that it has written there."""

    def __init__(self, way: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui"), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color"}
        command = [sys.executable, "-c", APP, way]
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        self.shown = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self.master, 65536):
                self.shown += data.decode("utf-8", "replace")

    def see(self, words: str) -> None:
        try:
            wait_until(lambda: words in self.shown, lambda: self.shown[-2000:])
        except AssertionError:
            self.process.kill()  # it would go on without its terminal, beside the tests that follow
            raise

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self) -> list[str]:
        """The lines that stand below the prompt once it has ended."""
        try:
            self.process.wait(60)
            assert termios.tcgetattr(self.slave) == self.before
        finally:
            self.process.kill()
            os.close(self.slave)
            self._reader.join()
            os.close(self.master)
        return ESCAPES.sub("", self.shown.rpartition("\x1b[?1049l")[2]).splitlines()


def crash(way: str) -> list[str]:
    app = Running(way)
    app.see("Ask anything.")
    app.type(b"a SECRET question\r")
    app.see("SECRET answer")
    app.type("half of the next one¶".encode())
    app.see("¶")  # a single letter, as words are drawn in parts where keys come slowly
    app.type(INSPECTOR)
    if way == "keys":
        app.see("the next key")
        app.type(b"x")
    lines = app.end()
    assert app.process.returncode == 1, app.shown[-3000:]
    return lines


@pytest.mark.parametrize(
    "way",
    [
        "handler",
        "worker",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("timer", "callback", "layout", "keys")),
    ],
)
def test_one_line_says_so_and_what_was_written_is_there_again(way: str) -> None:
    (line,) = crash(way)
    logs, chats = folder("logs"), folder("chats")
    assert logs is not None
    report = (logs / "crash.txt").read_text("utf-8")
    assert line.startswith("localrun: the app ended with an error of its own: ValueError in <string>, line ")
    assert str(logs / "crash.txt") in line
    assert "comes back at the next start" in line
    assert "SECRET" not in line + report
    assert "ValueError" in report
    store = ChatStore(chats)
    (summary,) = store.summaries()
    question, answer = store.open(summary.id).tree.messages()
    assert question.text == "a SECRET question"
    assert answer.text.startswith("a SECRET answer")

    again = Running("never")
    again.see("half of the next one")
    again.type(INSPECTOR)
    assert again.end() == []
    assert again.process.returncode == 0
    assert len(list(Path(str(chats)).glob("draft-*.json"))) == 1, "it was not sent this time either"


def test_files_and_text_hidden_by_an_edit_are_kept_too() -> None:
    app, _ = chat_app()
    again, _ = chat_app()

    async def write(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await ask(pilot, "hello")
        composer.attached.add_paste("[file: x]\nlong")
        composer.write("the next one")
        composer.edit(views(pilot)[0].message.id, (TextPart("hello again"),))  # type: ignore[union-attr]
        assert keep_draft(app.unsent)

    async def come_back(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await until(pilot, lambda: composer.attachments)
        assert composer.attachments == [FilePart("pasted text 1", "[file: x]\nlong")]
        assert composer.editor.text == "the next one\n\nhello again"
        assert take_draft(lambda: ImageShelf(None)).content == again.unsent, "kept until it is sent"

    drive(app, write)
    drive(again, come_back)


def test_what_was_written_is_kept_when_the_terminal_is_gone() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        chat_screen(pilot).composer.write("half of a question")
        app.end_by(1)
        app.end_by(1)

    drive(app, steps)
    assert app.return_code == 129
    assert take_draft(lambda: ImageShelf(None)).content == (TextPart("half of a question"),)


@pytest.mark.slow
def test_a_terminal_that_fails_at_the_end_is_told_of_too() -> None:
    app = Running("exit")
    app.see("Ask anything.")
    app.type(INSPECTOR)
    app.process.wait(60)
    wait_until(lambda: "an error of its own: ValueError" in app.shown)
    assert app.process.returncode == 1
    assert "SECRET" not in app.shown
    app.process.kill()
    os.close(app.slave)
    os.close(app.master)
