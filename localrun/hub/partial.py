"""A file that has arrived in part: the bytes, and a journal of the chunks that are there.

<etag>.<part>.localrun-part              as large as the whole file from the start
<etag>.<part>.<owner>.localrun-journal   who writes it, then one line a chunk: number and CRC-32

The journal's name is the claim. A new owner takes an abandoned part over by renaming its journal, which only one of
several can do, and a former owner that wakes up finds its journal gone and stops. No lock of the file system is used.
"""

import errno
import json
import os
import platform
import threading
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

from localrun.hub.api import RemoteFile

CHUNK_BYTES = 1 << 20  # what a kill can cost, a connection
ABANDONED_SECONDS = 60.0  # without a sign of life
PART, JOURNAL = ".localrun-part", ".localrun-journal"


class LostError(Exception):
    """Another process has taken this part over."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a journal."""

    repo: str
    file: str
    size: int
    host: str
    pid: int
    started: float  # of the process, seconds since 1970: a number of a process may be used again


class Partial:
    """A part that this process owns. `chunks` has the checksum of every chunk that is there."""

    def __init__(self, journal: Path, size: int) -> None:
        self.journal = journal
        self.path = _part_of(journal)
        self.size = size
        self.n_chunks = -(-size // CHUNK_BYTES)
        self.chunks = _read_chunks(journal, self.n_chunks) if self.path.exists() else {}
        self._lock = threading.Lock()
        self._lines: BinaryIO = open(journal, "ab", buffering=0)  # noqa: SIM115  (closed by close)
        self._lines.write(b"\n")  # ends a line that a crash has cut

    def reserve(self) -> None:
        """Make room for the whole file. OSError (ENOSPC) where there is none."""
        with open(self.path, "ab", buffering=0) as file:
            allocate(file.fileno(), self.size)

    def record(self, chunk: int, checksum: int) -> None:
        """A chunk is there. LostError when the part is no longer ours."""
        self.check_claim()
        with self._lock:
            _write_all(self._lines, b"%d %08x\n" % (chunk, checksum))
            self.chunks[chunk] = checksum

    def forget(self, chunk: int) -> None:
        """A chunk turned out bad; a checksum of -1 says so to whoever reads the journal next."""
        with self._lock:
            _write_all(self._lines, b"%d -1\n" % chunk)
            self.chunks.pop(chunk, None)

    def check_claim(self) -> None:
        if not self.journal.exists():
            raise LostError

    def sign_of_life(self) -> None:
        with suppress(OSError):
            os.utime(self.journal)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """First byte of a chunk, and the one behind its last."""
        return chunk * CHUNK_BYTES, min(self.size, (chunk + 1) * CHUNK_BYTES)

    def damaged(self) -> list[int]:
        """The chunks that are no longer what the journal says."""
        with open(self.path, "rb") as file:
            return [chunk for chunk, checksum in sorted(self.chunks.items()) if self.checksum(file, chunk) != checksum]

    def checksum(self, file: BinaryIO, chunk: int) -> int:
        """CRC-32 of a chunk as it is on the disk."""
        start, end = self.bounds(chunk)
        file.seek(start)
        return zlib.crc32(file.read(end - start))

    def close(self) -> None:
        """Leave the part to whoever goes on with it, from now on."""
        self._lines.close()
        with suppress(OSError):
            os.utime(self.journal, (0, 0))

    def remove(self) -> None:
        self.close()
        remove_partial(self.journal)


def open_partial(blob: Path, repo: str, file: RemoteFile) -> Partial | None:
    """A part of `file` to write: an abandoned one, else a new one; None while a living process has one."""
    blob.parent.mkdir(parents=True, exist_ok=True)
    me = uuid.uuid4().hex[:12]
    for journal in sorted(_journals(blob), key=lambda path: -_size(path)):  # the one that got furthest first
        head = read_head(journal)
        if head is None or head.size != file.size:
            remove_partial(journal)
        elif is_alive(journal, head):
            return None
        elif taken := _take_over(journal, me, repo, file):
            return Partial(taken, file.size)
    mine = blob.with_name(f"{blob.name}.{me}.{me}{JOURNAL}")
    _write_journal(mine, repo, file, {})
    if any(journal.name < mine.name and _lives(journal) for journal in _journals(blob)):
        mine.unlink(missing_ok=True)  # two began at once: one of them stays
        return None
    return Partial(mine, file.size)


def _take_over(journal: Path, me: str, repo: str, file: RemoteFile) -> Path | None:
    """Our journal of somebody's abandoned part; None when another one was quicker.

    Ours is in place, and alive, before the old one goes: nobody ever finds the part without an owner.
    """
    etag, part, _ = journal.name.split(".", 2)
    mine = journal.with_name(f"{etag}.{part}.{me}{JOURNAL}")
    _write_journal(mine, repo, file, _read_chunks(journal, -(-file.size // CHUNK_BYTES)))
    gone = journal.with_name(f"{mine.name}.old")
    try:
        os.rename(journal, gone)
    except OSError:
        mine.unlink(missing_ok=True)
        return None
    gone.unlink(missing_ok=True)
    return mine


def remove_partial(journal: Path) -> None:
    """Remove an unfinished download, the bytes first."""
    _part_of(journal).unlink(missing_ok=True)
    journal.unlink(missing_ok=True)


def remove_leftovers(blob: Path) -> None:
    """Remove what a crash in the last moment has left beside a complete file."""
    for journal in _journals(blob):
        if not _lives(journal):
            remove_partial(journal)


def find_partials(blobs: Path) -> Iterator[tuple[Path, Head, int]]:
    """Unfinished downloads in a folder of blobs: (journal, what it is, bytes there)."""
    for journal in sorted(blobs.glob(f"*{JOURNAL}")):
        head = read_head(journal)
        if head is not None and not (blobs / journal.name.partition(".")[0]).exists():
            n_chunks = -(-head.size // CHUNK_BYTES)
            yield journal, head, min(head.size, len(_read_chunks(journal, n_chunks)) * CHUNK_BYTES)


def read_head(journal: Path) -> Head | None:
    """None for a journal that cannot be read."""
    try:
        with open(journal, "rb") as file:
            head = Head(**json.loads(file.readline(1 << 16)))
        return head if type(head.size) is int and head.size >= 0 and type(head.pid) is int else None
    except (OSError, ValueError, TypeError):
        return None


def is_alive(journal: Path, head: Head) -> bool:
    """Whether somebody still works on a part."""
    if head.host == platform.node():
        try:
            if abs(psutil.Process(head.pid).create_time() - head.started) > 1:
                return False
        except psutil.Error:
            return False
    try:
        return time.time() - journal.stat().st_mtime < ABANDONED_SECONDS
    except OSError:
        return False


def allocate(descriptor: int, size: int) -> None:
    """Make a file `size` bytes long and own the blocks, where the system can promise that."""
    if hasattr(os, "posix_fallocate") and size:
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
    os.ftruncate(descriptor, size)


def _lives(journal: Path) -> bool:
    head = read_head(journal)
    return head is not None and is_alive(journal, head)


def _journals(blob: Path) -> list[Path]:
    return list(blob.parent.glob(f"{blob.name}.*{JOURNAL}"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _part_of(journal: Path) -> Path:
    return journal.with_name(".".join(journal.name.split(".")[:2]) + PART)


def _write_journal(journal: Path, repo: str, file: RemoteFile, chunks: dict[int, int]) -> None:
    """A journal under our name. It appears as a whole or not at all."""
    started = psutil.Process().create_time()
    head = Head(repo, file.path, file.size, platform.node(), os.getpid(), started)
    lines = [json.dumps(asdict(head)), *(f"{chunk} {checksum:08x}" for chunk, checksum in chunks.items())]
    fresh = journal.with_name(f"{journal.name}.new")
    fresh.write_text("\n".join(lines) + "\n", "utf-8")
    os.replace(fresh, journal)


def _read_chunks(journal: Path, n_chunks: int) -> dict[int, int]:
    """Checksums by chunk; lines that are cut or make no sense count for nothing."""
    chunks: dict[int, int] = {}
    with suppress(OSError), open(journal, "rb") as file:
        file.readline()
        for line in file:
            number, _, checksum = line.partition(b" ")
            with suppress(ValueError):
                chunk, value = int(number), int(checksum, 16)
                if not line.endswith(b"\n") or not 0 <= chunk < n_chunks:
                    continue
                if value < 0:
                    chunks.pop(chunk, None)
                elif len(checksum.strip()) == 8:
                    chunks[chunk] = value
    return chunks


def _write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
