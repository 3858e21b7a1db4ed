"""Claims of chats on blocks, so that an erased chat leaves nothing on disk.

Beside the blocks of a fingerprint each chat has a file with a line for each of its blocks. A block is claimed before it
is written; a block without a claim may be removed at any time. An erased chat leaves a mark without text for a while,
so that another process, which still has it in memory, does not write it again.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from localrun.base.files import append
from localrun.base.small_file import read_small

MAX_BYTES = 64 << 20  # of the claims of a chat: of a million blocks
FOLDER = "chats"  # beside the blocks of one fingerprint
ERASED = "erased"  # beside the fingerprints
MARKED_SECONDS = 30 * 86400  # no process lives longer
_CHAT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
ClaimStamp = tuple[int, ...]  # of a file that is only appended to: which one it is, how long, and since when
_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")


class Claims:
    """Claims of one fingerprint. An unreadable file claims nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self._known: dict[str, tuple[set[str], ClaimStamp]] = {}  # what this process has read or written

    def add(self, chat: str, names: Iterable[str]) -> None:
        """Note that these blocks belong to a chat. The caller holds the lock of the root. Raises OSError."""
        with self._opened(chat) as file:
            known, stamp = self._known.get(chat, (set(), None))
            if stamp != _stamp(file):  # another process has been here
                known = self.of(chat)
            new = sorted(set(names) - known)
            if new:
                append(file.fileno(), "".join(f"\n{name}" for name in new).encode())
            known.update(new)
            self._known[chat] = known, _stamp(file)

    def of(self, chat: str) -> set[str]:
        return read_claims(self.folder / file_name(chat))

    def drop(self, chat: str) -> None:
        """Remove the claims of a chat. Raises OSError."""
        (self.folder / file_name(chat)).unlink(missing_ok=True)

    def chats(self) -> list[str]:
        with suppress(OSError):
            return sorted(path.name for path in self.folder.iterdir())
        return []

    def _opened(self, chat: str) -> FileIO:
        path = self.folder / file_name(chat)
        try:
            return open(path, "ab", buffering=0, opener=_private)
        except FileNotFoundError:
            for folder in (self.folder.parent, self.folder):  # the mode is of the last folder that mkdir makes
                folder.mkdir(exist_ok=True, mode=0o700)
            return open(path, "ab", buffering=0, opener=_private)


def _stamp(file: FileIO) -> ClaimStamp:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)  # a pipe in its place must not stop us


def read_claims(path: Path) -> set[str]:
    """Names of the claimed blocks; a line that a crash cut short is ignored."""
    with suppress(OSError, UnicodeDecodeError):
        lines = read_small(path, MAX_BYTES).decode("ascii").splitlines()
        return {line for line in lines if _NAME.fullmatch(line)}
    return set()


def file_name(chat: str) -> str:
    """File name for a chat: its id where that is safe as a name, else a hash of it."""
    return chat if _CHAT.fullmatch(chat) else hashlib.sha256(chat.encode(errors="replace")).hexdigest()[:32]


def mark_erased(root: Path, chat: str) -> None:
    """Mark a chat as erased. Raises OSError."""
    (root / ERASED).mkdir(parents=True, exist_ok=True, mode=0o700)
    (root / ERASED / file_name(chat)).touch(mode=0o600)


def is_erased(root: Path, chat: str) -> bool:
    """Whether a chat was erased a short time ago. Raises OSError."""
    try:
        return time.time() - (root / ERASED / file_name(chat)).stat().st_mtime < MARKED_SECONDS
    except FileNotFoundError:
        return False
