"""The app's terminal after a stop that it could not see coming."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from localrun_testing import REPOSITORY
from localrun_testing.waiting import until

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals and no signals on Windows", allow_module_level=True)

import pty
import termios

# Tells of the terminal that it was told of, of a paste, and of who reads keys.
APP = """
import sys, threading
from pathlib import Path
from textual.app import App
from localrun_tui.terminal import Terminal

class Told(App):
    def on_mount(self):
        self.app_resume_signal.subscribe(self, lambda _: self.tell("resumed"))
        self.tell("began")
    def tell(self, words):
        with Path(sys.argv[1]).open("a") as file:
            file.write(words + "\\n")
    def on_paste(self, event):
        readers = [one for one in threading.enumerate() if one.name == "textual-input"]
        self.tell(f"{len(event.text)} characters, {len(readers)} reader")
        self.exit()

Told(driver_class=Terminal).run()
"""


def test_one_reads_keys_after_a_stop_and_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.touch()
    master, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui"), *sys.path])
    app = subprocess.Popen(
        [sys.executable, "-c", APP, str(told)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color"},
    )
    os.set_blocking(master, False)

    def lines() -> list[str]:
        with suppress(OSError):
            os.read(master, 1 << 16)  # else the app waits until somebody reads what it draws
        return told.read_text().splitlines()

    try:
        until(lambda: lines() == ["began"])
        psutil.Process(app.pid).suspend()
        time.sleep(0.2)
        psutil.Process(app.pid).resume()
        until(lambda: lines() == ["began", "resumed"])
        os.write(master, b"\x1b[200~" + b"word " * 600 + b"\x1b[201~")
        until(lambda: lines()[2:] == ["3000 characters, 1 reader"])
        until(lambda: lines() != [] and app.poll() is not None)
        assert termios.tcgetattr(terminal) == before
    finally:
        app.kill()
        app.wait()
        os.close(master)
        os.close(terminal)
