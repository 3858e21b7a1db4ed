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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from localrun_testing.waiting import PATIENCE, until

from localrun.base.paths import writable_folder
from localrun.chat.journal import ChatStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals and no SIGKILL on Windows"),
]
KILLS = int(os.environ.get("LOCALRUN_KILLS", "12"))
ROUNDS_A_CHAT = 8
REAL_EVERY = 6  # rounds; then the built-in model answers
KEPT_A_ROUND = 2  # messages at least, where the app is given the time
ENTER, AGAIN, STOP = b"\r", b"\x12", b"\x1b"
SEND_HELD = b"\x1b[A" + ENTER + b"\x1b[B"  # up to what waits, and back; nothing where nothing waits


@dataclass
class Kept:
    """What all the apps have told: text by message by chat."""

    chats: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def n_messages(self) -> int:
        return sum(map(len, self.chats.values()))

    def note(self, line: str) -> None:
        chat, message, text = line.split(" ", 2)
        self.chats.setdefault(chat, {})[message] = ast.literal_eval(text)


class RunningApp:
    """The app on a terminal of its own; its process and all that it starts carry a mark. `kept` notes what it tells."""

    def __init__(self, model: str, chat_id: str, mark: str, kept: Kept) -> None:
        self.mark = mark
        self.kept = kept
        self.told: set[str] = set()  # kinds of lines
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
        self._readers = [threading.Thread(target=self._drain), threading.Thread(target=self._listen, args=(told,))]
        for reader in self._readers:
            reader.start()

    def _drain(self) -> None:
        with suppress(OSError):  # the terminal has lost its other end
            while os.read(self.master, 65536):
                pass

    def _listen(self, fd: int) -> None:
        with os.fdopen(fd) as told:
            for line in told:
                kind, _, rest = line.partition(" ")
                if kind == "kept" and line.endswith("\n"):  # half a line was not told
                    self.kept.note(rest)
                self.told.add(kind)

    def type(self, keys: bytes) -> None:
        with suppress(OSError):
            os.write(self.master, keys)

    def kill(self) -> None:
        """kill -9; returns when all that it has started is gone, and all that it told is noted."""
        self._process.kill()
        self._process.wait()
        until(lambda: not marked(self.mark), lambda: f"left behind: {marked(self.mark)}")
        os.close(self.master)
        for reader in self._readers:
            reader.join()


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("KILL_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def use(app: RunningApp, rng: random.Random, seconds: float, n_kept: int) -> None:
    """Type, send, stop, ask again, and send what a stop has held; for so long, and until so many are kept."""
    began, before = time.monotonic(), app.kept.n_messages
    app.type(question(rng))
    while time.monotonic() - began < seconds or app.kept.n_messages - before < n_kept:
        assert time.monotonic() - began < PATIENCE, f"{app.kept.n_messages - before} of {n_kept} messages are kept"
        time.sleep(rng.uniform(0.0, 0.3))
        stop = [STOP] if "loaded" in app.told else []  # before, it would give the load up, and all would wait
        app.type(rng.choice([question(rng)] * 4 + [AGAIN, SEND_HELD] + stop))
    time.sleep(rng.uniform(0.0, 0.1))


def question(rng: random.Random) -> bytes:
    return f"question {rng.random()}".encode() + ENTER


def test_nothing_that_was_kept_is_lost_however_often_the_app_is_killed(home: Path) -> None:
    rng = random.Random(6)
    kept = Kept()
    chat_id = ""
    for number in range(KILLS):
        real = number % REAL_EVERY == REAL_EVERY - 1
        chat_id = "" if number % ROUNDS_A_CHAT == 0 else chat_id
        app = RunningApp("builtin" if real else "counting", chat_id, f"{home}-{number}", kept)
        early = number % 4 == 3 and not real
        try:
            until(lambda app=app, early=early: early or "ready" in app.told)  # type: ignore[misc]
            use(app, rng, rng.uniform(0.0, 4.0 if real else 1.2), 0 if early else KEPT_A_ROUND)
        finally:
            app.kill()
        chat_id = max(kept.chats, default="")
        check(kept.chats)
    assert kept.n_messages >= KILLS


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
