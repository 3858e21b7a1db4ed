"""The file of one chat: records are appended, never changed. Several processes may append at once."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

from localrun.base.files import append, make_private, sync, sync_folder
from localrun.base.small_file import open_regular
from localrun.chat.records import split


class JournalFile:
    """Append records, and read new ones. What cannot be written waits for the next append.

    `problem` says why the last records are not on disk, in words for the user; empty while all of them are.
    """

    def __init__(self, path: Path | None, exists: bool = False) -> None:
        """Open nothing yet. `path` None stores nothing; without `exists` the first append creates the file."""
        self.path = path
        self.exists = exists
        self.problem = ""
        self.damaged = 0  # stretches of the file that hold no record
        self._pending: list[bytes] = []
        self._offset = 0
        self._size = 0  # that the file has where nobody else writes in it
        self._settled = 0  # of `damaged`: before the last record read
        self._lock = threading.Lock()

    @property
    def has_grown(self) -> bool:
        """Whether another program appended since the last reading."""
        try:
            return self.exists and self.path is not None and self.path.stat().st_size != self._size
        except OSError:
            return False

    def put_off(self, record: bytes) -> None:
        """Write this record together with the next one."""
        with self._lock:
            self._pending.append(record)

    def append(self, record: bytes, durable: bool = True) -> None:
        """Write a record; with `durable` return when it will survive a crash of the machine. Never raises."""
        with self._lock:
            self._pending.append(record)
            self._write(durable or bool(self.problem))

    def flush(self) -> None:
        """Try again to write what could not be written."""
        with self._lock:
            if self.problem:
                self._write(durable=True)

    def read_new(self) -> Iterator[bytes]:
        """Records appended since the last call, own ones included. Raises OSError."""
        data = read_file(self.path, self._offset) if self.path else b""
        start, damaged, unread = self._offset, 0, 0
        self._size = start + len(data)
        for end, record in split(data):
            if record is None:
                unread += 1
                continue
            damaged, unread = damaged + unread, 0
            self._offset = start + end
            yield record
        self._settled += damaged
        self.damaged = self._settled + unread

    def _write(self, durable: bool) -> None:
        if self.path is None:
            self._pending.clear()
            return
        try:
            data = b"".join(self._pending)
            _append(self.path, data, new=not self.exists, durable=durable)
        except FileNotFoundError:
            self.problem = "another program removed this chat: what you write now is not kept"
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}: what you write now is not kept"
        else:
            self.exists, self.problem = True, ""
            self._size += len(data)
            self._pending.clear()


def read_file(path: Path, offset: int = 0) -> bytes:
    """Read a regular file from `offset` on; anything else is refused, since a pipe may never end."""
    with open_regular(path) as file:
        make_private(file.fileno())
        file.seek(offset)
        return file.read()


def _append(path: Path, data: bytes, new: bool, durable: bool) -> None:
    """Append by one write; with `durable` wait for the disk."""
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if new:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags |= os.O_CREAT
    fd = os.open(path, flags, 0o600)
    try:
        make_private(fd)
        append(fd, data)  # a record torn here ends where the next one begins
        if durable:
            sync(fd)
    except OSError:
        if new:  # no other process knows it: half a first message would be an empty chat
            path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    if new and durable:
        sync_folder(path.parent)
