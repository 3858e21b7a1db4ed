"""The app in a real terminal: a tmux server of its own with `localrun` in its only window."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from localrun_testing import REPOSITORY

WAIT = 60.0  # seconds for what should take one


class Terminal:
    """`folder` gets the socket, and `screens.txt` with every screen that was waited for; `cwd` is where it starts."""

    def __init__(
        self, folder: Path, cwd: Path, environment: Mapping[str, str], size: tuple[int, int] = (80, 24)
    ) -> None:
        self._command = ["tmux", "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._environment = dict(environment)
        self._environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui")])
        self._environment.setdefault("TERM", "xterm-256color")
        self._size = ["-x", str(size[0]), "-y", str(size[1])]
        self._cwd = cwd
        self.record = folder / "screens.txt"

    def start(self) -> None:
        self._run("new-session", "-d", *self._size, "-c", str(self._cwd), f"exec {sys.executable} -m localrun")

    def snapshot(self, title: str) -> None:
        """Keep the screen as it is now, under this title."""
        self._note(title)

    def press(self, key: str, named: str = "") -> None:
        """Press a key as tmux calls it, once the screen says what it does in these words."""
        if named:
            self.see(named)
        self._run("send-keys", key)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """A bracketed paste, as tmux sends it: CR where a line ends."""
        self._run("set-buffer", "--", text)
        self._run("paste-buffer", "-p")

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def see(self, words: str, seconds: float = WAIT) -> None:
        """Wait until they are on the screen."""
        self.until(lambda: words in self.text(), f"no {words!r}", seconds)
        self._note(words)

    def until_gone(self, words: str) -> None:
        self.until(lambda: words not in self.text(), f"still {words!r}")

    def until(self, is_so: Callable[[], bool], otherwise: str, seconds: float = WAIT) -> None:
        give_up = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > give_up:
                self._note(otherwise)
                raise AssertionError(f"{otherwise} in\n{self.text()}\nall screens: {self.record}")
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9 of the app."""
        psutil.Process(int(self._run("list-panes", "-F", "#{pane_pid}"))).send_signal(signal.SIGKILL)
        self.until_ended()

    def stop_and_go_on(self) -> None:
        """SIGSTOP, and SIGCONT a moment later."""
        app = psutil.Process(int(self._run("list-panes", "-F", "#{pane_pid}")))
        app.suspend()
        time.sleep(0.3)
        app.resume()

    def until_ended(self) -> None:
        self.until(self._has_ended, "has not ended", 30.0)

    def close(self) -> None:
        subprocess.run([*self._command, "kill-server"], capture_output=True)

    def _has_ended(self) -> bool:
        return subprocess.run([*self._command, "has-session"], capture_output=True).returncode != 0

    def _note(self, title: str) -> None:
        with self.record.open("a", encoding="utf-8") as file:
            file.write(f"=== {title}\n{self.text()}\n")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._command, *arguments], env=self._environment, capture_output=True, text=True)
        return done.stdout
