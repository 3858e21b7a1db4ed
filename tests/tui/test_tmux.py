"""The real thing: `localrun` in tmux, with the built-in model in a process of its own."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

from localrun.hub.catalogue import BUILTIN, read_catalogue

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux: not this OS (windows)"),
]


class Terminal:
    """A tmux server of its own with `localrun` in its only window."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._command = ["tmux", "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._environment = {**os.environ, "LOCALRUN_HOME": str(home), "TERM": "xterm-256color"}
        self._environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui")])

    def start(self) -> None:
        self._run("new-session", "-d", "-x", "100", "-y", "30", f"{sys.executable} -m localrun")

    def keys(self, *names: str) -> None:
        self._run("send-keys", *names)

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def wait_for(self, words: str, seconds: float = 60.0) -> None:
        give_up = time.monotonic() + seconds
        while words not in self.text():
            assert time.monotonic() < give_up, f"no {words!r} in\n{self.text()}"
            time.sleep(0.1)

    def wait_until_gone(self, words: str) -> None:
        give_up = time.monotonic() + 60
        while words in self.text():
            assert time.monotonic() < give_up, self.text()
            time.sleep(0.1)

    def ended(self) -> bool:
        return subprocess.run([*self._command, "has-session"], capture_output=True).returncode != 0

    def close(self) -> None:
        subprocess.run([*self._command, "kill-server"], capture_output=True)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._command, *arguments], env=self._environment, capture_output=True, text=True)
        return done.stdout


@pytest.fixture
def terminal(tmp_path: Path, home: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, home)
    yield terminal
    terminal.close()


def test_a_newcomer_starts_chats_branches_leaves_and_finds_it_again(terminal: Terminal) -> None:
    terminal.start()
    terminal.wait_for("Welcome to localrun")
    terminal.wait_for(read_catalogue()[BUILTIN]["note"][:20])
    terminal.keys("Enter")
    terminal.wait_for("builtin Q")
    terminal.keys("Hello!", "Enter")
    terminal.wait_for("tok/s")
    terminal.keys("C-r")
    terminal.wait_for("‹ 2/2 ›")
    terminal.keys("C-g")
    terminal.wait_for("KV cache")
    terminal.keys("C-q")
    give_up = time.monotonic() + 30
    while not terminal.ended():
        assert time.monotonic() < give_up, terminal.text()
        time.sleep(0.1)

    terminal.start()
    terminal.wait_for("Ask anything.")
    terminal.wait_for("builtin Q")  # the model last used
    terminal.keys("C-l")
    terminal.wait_for("Rename")  # the list has the focus
    terminal.keys("/")
    terminal.wait_until_gone("Rename")
    terminal.keys("hello")
    terminal.wait_for("1 found")
    terminal.keys("Enter")
    terminal.wait_for("‹ 2/2 ›")
