"""The running app is killed at random moments: what it had shown as kept is there, every chat opens, nobody is left."""

import ast
import fcntl
import os
import pty
import random
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from localrun.base.paths import writable_folder
from localrun.chat.journal import ChatStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals and no SIGKILL on Windows"),
]
KILLS = int(os.environ.get("LOCALRUN_KILLS", "12"))
ROUNDS_A_CHAT = 8
REAL_EVERY = 6  # rounds; then the built-in model answers
LEAVE_SECONDS = 10.0  # for an orphaned worker to end
ENTER, AGAIN, STOP = b"\r", b"\x12", b"\x1b"


@dataclass
class Kept:
    """What all the apps have told: text by message by chat."""

    chats: dict[str, dict[str, str]] = field(default_factory=dict)
    n_ready: int = 0

    def note(self, line: str) -> None:
        kind, chat, *rest = line.rstrip("\n").split(" ", 3)
        texts = self.chats.setdefault(chat, {})
        if kind == "ready":
            self.n_ready += 1
        else:
            texts[rest[0]] = ast.literal_eval(rest[1])


class RunningApp:
    """The app on a terminal of its own; its process and all that it starts carry a mark."""

    def __init__(self, model: str, chat_id: str, mark: str) -> None:
        self.mark = mark
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        told, telling = os.pipe()
        environment = {**os.environ, "TERM": "xterm-256color", "KILL_MARK": mark}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        command = [sys.executable, "-m", "localrun_testing.app_to_kill", str(telling), model, chat_id]
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            pass_fds=[telling],
            start_new_session=True,
        )
        os.close(slave)
        os.close(telling)
        self.told = os.fdopen(told)
        self._screen = threading.Thread(target=self._drain)
        self._screen.start()

    def _drain(self) -> None:
        with suppress(OSError):  # the terminal has lost its other end
            while os.read(self.master, 65536):
                pass

    def type(self, keys: bytes) -> None:
        with suppress(OSError):
            os.write(self.master, keys)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def lines(self) -> list[str]:
        """What it told, once it is dead; half a line was not told."""
        with self.told as told:
            return [line for line in told if line.endswith("\n")]

    def leftovers(self) -> list[psutil.Process]:
        """Processes that outlived it by LEAVE_SECONDS."""
        until = time.monotonic() + LEAVE_SECONDS
        while (left := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.05)
        os.close(self.master)
        self._screen.join()
        return left


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("KILL_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def use(app: RunningApp, rng: random.Random, seconds: float, question: Callable[[], str]) -> None:
    """Type, send, stop and ask again for so long."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        app.type(rng.choice([question().encode() + ENTER] * 4 + [AGAIN, STOP]))
        time.sleep(min(left, rng.uniform(0.0, 0.3)))


def test_nothing_that_was_kept_is_lost_however_often_the_app_is_killed(home: Path) -> None:
    rng = random.Random(6)
    kept = Kept()
    chat_id = ""
    for number in range(KILLS):
        real = number % REAL_EVERY == REAL_EVERY - 1
        chat_id = "" if number % ROUNDS_A_CHAT == 0 else chat_id
        app = RunningApp("builtin" if real else "counting", chat_id, f"{home}-{number}")
        early = number % 4 == 3 and not real
        lines = [] if early else [app.told.readline()]
        use(app, rng, rng.uniform(0.0, 4.0 if real else 1.2), lambda: f"question {rng.random()}")
        app.kill()
        assert not app.leftovers(), f"round {number}"
        for line in [*lines, *app.lines()]:
            kept.note(line)
        written = {chat: texts for chat, texts in kept.chats.items() if texts}
        chat_id = max(written, default="")
        check(written)
    assert kept.n_ready >= KILLS * 3 // 4, "most rounds got as far as the app"
    assert sum(map(len, kept.chats.values())) >= KILLS // 2  # a busy machine keeps fewer in the time


def check(written: dict[str, dict[str, str]]) -> None:
    """Another program reads every chat whole, and finds in it what the app had shown as kept."""
    folder = writable_folder("chats")
    assert folder is not None
    store = ChatStore(folder)
    assert set(written) <= {one.id for one in store.summaries()}
    for chat_id, texts in written.items():
        tree = store.open(chat_id).tree
        assert not any(message.lost for message in tree.messages())
        assert {message_id: tree[message_id].text for message_id in texts} == texts
