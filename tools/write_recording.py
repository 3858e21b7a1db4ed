"""Records half a minute of the app, typed by a script: docs/app.cast, which `asciinema play` shows.

The built-in model of this checkout answers. Nobody waits in it for longer than a reader would.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAST = ROOT / "docs" / "app.cast"
SHOWN_ROOT = "~/localrun"  # in the place of where this checkout lies
COLUMNS, ROWS = 100, 28
LONGEST = 1.6  # seconds that nothing may change
PATIENCE = 30.0  # seconds to wait for words
KEY = 0.07  # seconds between two keys
STEPS: tuple[tuple[str, str, float], ...] = (  # words to wait for, what is typed then, and the seconds to look at it
    ("until it is there", "\x1b[B", 0.8),  # the built-in model
    ("", "\r", 0.5),
    ("is ready", "Hello! What are you?", 0.3),
    ("", "\r", 0.5),
    ("tok/s", "What is a KV cache?", 0.3),
    ("", "\r", 0.5),
    ("tok/s", "\x12", 0.5),  # answer again: a branch
    ("tok/s", "\x07", 2.5),  # the inspector
    ("", "\x07", 0.5),
    ("", "\x13", 2.0),  # this chat: numbers of its own
    ("", "\x1b", 0.8),
    ("", "\x1bOQ", 0.8),  # F2 renames
    ("Title of this chat", "\x15", 0.2),
    ("", "First questions", 0.4),
    ("", "\r", 1.2),
    ("", "\x0c", 2.0),  # the list of chats
    ("", "\x0c", 0.5),
    ("", "\x0f", 2.5),  # models
    ("", "\x1b", 0.8),
    ("", "\x11", 0.5),
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
        recording = record({**os.environ, "LOCALRUN_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
    recording.write(CAST)
    print(f"{CAST}: {recording.pieces[-1][0]:.0f} s, {CAST.stat().st_size >> 10} KiB", file=sys.stderr)


def record(environment: dict[str, str]) -> Recording:
    """Run the app in a terminal of its own, and type."""
    child, screen = pty.fork()
    if child == 0:
        os.execvpe(sys.executable, [sys.executable, "-m", "localrun"], environment)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    recording = Recording()
    listen(screen, recording, 1.0)
    for words, keys, seconds in STEPS:
        wait_for(words, screen, recording)
        whole = len(keys) > 1 and keys[0] == "\x1b"
        for key in [keys] if whole or not keys else keys:
            os.write(screen, key.encode())
            listen(screen, recording, KEY)
        listen(screen, recording, seconds)
    listen(screen, recording, 3.0)
    os.waitpid(child, 0)
    return recording


def wait_for(words: str, screen: int, recording: Recording) -> None:
    """Until they have come since the last keys, for as long as a slow machine may take."""
    until = time.monotonic() + PATIENCE
    while words and words not in recording.since_typed and time.monotonic() < until:
        listen(screen, recording, KEY)
    recording.since_typed = ""


def listen(screen: int, recording: Recording, seconds: float) -> None:
    """Keep what comes for so long."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not select.select([screen], [], [], left)[0]:
            return
        try:
            data = os.read(screen, 65536)
        except OSError:  # the app has ended
            return
        if not data:
            return
        recording.add(data)


if __name__ == "__main__":
    main()
