"""The app's terminal after stops, those that it could not see coming among them, and after its loss."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from localrun_testing import REPOSITORY
from localrun_testing.waiting import until

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals and no signals on Windows", allow_module_level=True)

import pty
import termios

pytestmark = pytest.mark.process

# Tells of the terminal that it was told of, of a paste, and of who reads keys; for a key, sends itself a signal while a
# write to the terminal is under way.
APP = """
import os, signal, sys, threading, time
from pathlib import Path
from localrun_tui.crash import PlainEnd

class Told(PlainEnd):
    def on_mount(self):
        self.app_resume_signal.subscribe(self, lambda _: self.tell("resumed"))
        self.tell("began")
    def tell(self, words):
        with Path(sys.argv[1]).open("a") as file:
            file.write(words + "\\n")
    def on_key(self, event):
        with self._driver._writer_thread._queue.mutex:
            os.kill(os.getpid(), {"z": signal.SIGTSTP, "c": signal.SIGCONT}[event.key])
            time.sleep(0.01)  # the handler runs here
        self.tell("written")
    def on_paste(self, event):
        readers = [one for one in threading.enumerate() if one.name == "textual-input"]
        self.tell(f"{len(event.text)} characters, {len(readers)} reader")
        self.exit()
    def on_unmount(self):
        for _ in range(100):
            self._driver.write("more than waits to be written")

sys.exit(Told().run_on_terminal())
"""


class App:
    """The app in a terminal of its own."""

    def __init__(self, told: Path) -> None:
        told.touch()
        self.told = told
        self.master, self.terminal = pty.openpty()
        self.before = termios.tcgetattr(self.terminal)
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui"), *sys.path])
        self.process = psutil.Popen(
            [sys.executable, "-c", APP, str(told)],
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            env={**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color"},
        )
        os.set_blocking(self.master, False)

    def lines(self) -> list[str]:
        with suppress(OSError):
            os.read(self.master, 1 << 16)  # else the app waits until somebody reads what it draws
        return self.told.read_text().splitlines()

    def tells(self, *lines: str) -> None:
        until(lambda: self.lines() == list(lines), self.lines)

    def lose_terminal(self) -> None:
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with closing(App(tmp_path / "told")) as app:
        app.tells("began")
        yield app


def test_one_reads_keys_after_a_stop_and_the_terminal_is_left_as_it_was(app: App) -> None:
    app.process.suspend()
    time.sleep(0.2)
    app.process.resume()
    app.tells("began", "resumed")
    os.write(app.master, b"\x1b[200~" + b"word " * 600 + b"\x1b[201~")
    app.tells("began", "resumed", "3000 characters, 1 reader")
    until(lambda: app.lines() != [] and app.process.poll() is not None)
    assert termios.tcgetattr(app.terminal) == app.before


def test_a_stop_waits_for_the_write_that_it_interrupts(app: App) -> None:
    os.write(app.master, b"z")
    until(lambda: app.lines() != [] and app.process.status() == psutil.STATUS_STOPPED, app.lines)
    assert termios.tcgetattr(app.terminal) == app.before
    app.process.resume()
    app.tells("began", "written", "resumed")


def test_taking_up_again_waits_for_the_write_that_it_interrupts(app: App) -> None:
    os.write(app.master, b"c")
    app.tells("began", "written", "resumed")


def test_it_ends_with_its_terminal(app: App) -> None:
    """Without a hangup, too: the terminal is not the controlling one."""
    app.lose_terminal()
    until(lambda: app.process.poll() is not None)
    assert app.process.returncode == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(app: App, number: signal.Signals) -> None:
    app.process.send_signal(number)
    until(lambda: app.lines() != [] and app.process.poll() is not None)
    assert app.process.returncode == 128 + number
    assert termios.tcgetattr(app.terminal) == app.before
