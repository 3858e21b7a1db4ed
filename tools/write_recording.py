"""Records half a minute of the app, typed by a script: docs/app.cast, which `asciinema play` shows.

The built-in model of this checkout answers. Nobody waits in it for longer than a reader would.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

from localrun.chat.journal import ChatStore
from tools import ROOT

CAST = ROOT / "docs" / "app.cast"
SHOWN_ROOT = "~/localrun"  # in the place of where this checkout lies
COLUMNS, ROWS = 100, 28
LONGEST = 1.6  # seconds that nothing may change
LONGEST_WAIT = 4.0  # seconds that an answer may take: a slower one is shown faster
PATIENCE = 120.0  # seconds to wait for words, an answer, or the end of the app
KEY = 0.07  # seconds between two keys
# Words to wait for, the number of stored answers, or "" for anything new; what is typed then; seconds to look at it.
STEPS: tuple[tuple[str | int, str, float], ...] = (
    ("until it is there", "", 1.3),
    ("until it is there", "\r", 0.5),  # the marked row: the built-in model
    ("is ready", "Hello! What are you?", 0.3),
    ("", "\r", 0.5),
    (1, "What is a KV cache?", 0.3),
    ("", "\r", 0.5),
    (2, "\x12", 0.5),  # answer again: a branch
    (3, "\x07", 2.5),  # the inspector
    ("Inspector", "\x07", 0.5),
    ("", "\x13", 2.0),  # this chat: numbers of its own
    ("This chat", "\x1b", 0.8),
    ("Ask anything", "\x1bOQ", 0.8),  # F2 renames
    ("Title of this chat", "\x15", 0.2),
    ("", "First questions", 0.4),
    ("", "\r", 1.2),
    ("", "\x0c", 2.0),  # the list of chats
    ("Today", "\x0c", 0.5),
    ("", "\x0f", 2.5),  # models
    ("weights ", "\x1b", 0.8),
    ("Ask anything", "\x11", 0.5),
)


@dataclass
class Recording:
    """Pieces of output with the second each came at, pauses cut to what a reader needs."""

    began: float = field(default_factory=time.monotonic)
    pieces: list[tuple[float, str]] = field(default_factory=list)
    since_typed: str = ""
    _cut: float = 0.0
    _last: float = 0.0

    def add(self, data: bytes) -> None:
        now = time.monotonic() - self.began - self._cut
        self._cut += max(now - self._last - LONGEST, 0.0)
        self._last = min(now, self._last + LONGEST)
        text = data.decode("utf-8", "replace")
        self.since_typed += text
        self.pieces.append((round(self._last, 3), text))

    def shorten(self, n_before: int) -> None:
        """Show what came after so many pieces in LONGEST_WAIT at most."""
        began = self.pieces[n_before - 1][0] if n_before else 0.0
        if (took := self._last - began) <= LONGEST_WAIT:
            return
        faster = LONGEST_WAIT / took
        self.pieces[n_before:] = [
            (round(began + (at - began) * faster, 3), text) for at, text in self.pieces[n_before:]
        ]
        self._cut += took - LONGEST_WAIT
        self._last = began + LONGEST_WAIT

    def write(self, path: Path) -> None:
        header = {
            "version": 2,
            "width": COLUMNS,
            "height": ROWS,
            "env": {"TERM": "xterm-256color"},
            "title": "localrun",
        }
        shown = ((at, text.replace(str(ROOT), SHOWN_ROOT)) for at, text in self.pieces)
        lines = [json.dumps(header), *(json.dumps([at, "o", text], ensure_ascii=False) for at, text in shown)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        recording = record(Path(home))
    recording.write(CAST)
    print(f"{CAST}: {recording.pieces[-1][0]:.0f} s, {CAST.stat().st_size >> 10} KiB", file=sys.stderr)


def record(home: Path) -> Recording:
    """Run the app in a terminal of its own with this home, and type."""
    child, screen = pty.fork()
    if child == 0:
        colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment = {**os.environ, "LOCALRUN_HOME": str(home), **colours}
        os.execvpe(sys.executable, [sys.executable, "-m", "localrun"], environment)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    recording = Recording()
    try:
        for awaited, keys, seconds in STEPS:
            wait_for(awaited, screen, recording, home)
            recording.since_typed = "" if keys else recording.since_typed
            whole = len(keys) > 1 and keys[0] == "\x1b"
            for key in [keys] if whole else keys:
                os.write(screen, key.encode())
                listen(screen, recording, KEY)
            listen(screen, recording, seconds)
        if listen(screen, recording, PATIENCE):
            raise SystemExit("the app did not end")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.waitpid(child, 0)
    return recording


def wait_for(awaited: str | int, screen: int, recording: Recording, home: Path) -> None:
    """Wait until words have come since the last keys, or so many answers are stored. SystemExit where they do not."""
    give_up = time.monotonic() + PATIENCE
    n_before = len(recording.pieces)
    while not has_come(awaited, recording, home):
        listen(screen, recording, KEY)
        if time.monotonic() > give_up:
            raise SystemExit(f"{awaited!r} did not come")
    recording.shorten(n_before)


def has_come(awaited: str | int, recording: Recording, home: Path) -> bool:
    if isinstance(awaited, int):
        return n_answers(home) >= awaited
    return bool(recording.since_typed) and awaited in recording.since_typed


def n_answers(home: Path) -> int:
    """Number of the answers that are stored: the words on the screen say nothing new when a second one looks alike."""
    chats = ChatStore(home / "chats")
    messages = [message for one in chats.summaries() for message in chats.peek(one.id).tree.messages()]
    return sum(message.role == "assistant" and bool(message.stats) for message in messages)


def listen(screen: int, recording: Recording, seconds: float) -> bool:
    """Keep what comes for so long; False where the app has ended before."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not select.select([screen], [], [], left)[0]:
            break
        try:
            data = os.read(screen, 65536)
        except OSError:  # the app has ended
            return False
        if not data:
            return False
        recording.add(data)
    return True


if __name__ == "__main__":
    main()
