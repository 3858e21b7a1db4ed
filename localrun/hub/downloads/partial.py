"""A file that has arrived in part: the bytes, and a journal of the chunks that are there.

<etag>.<part>.localrun-part              as large as the whole file from the start
<etag>.<part>.<owner>.localrun-journal   who writes it, then one line a chunk: number and CRC-32

When the file is complete and its hash is right, the part becomes the file. The journal stays beside it until the disk
has all of it (unsynced.py).

The journal's name is the claim. A new owner takes an abandoned part over by renaming its journal, which only one of
several can do, and a former owner that wakes up finds its journal gone and stops. No lock of the file system is used.
"""

import errno
import os
import platform
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import psutil

from localrun.base.files import replace_file, sync, sync_folder
from localrun.hub.disk.own_files import is_own, open_own
from localrun.hub.downloads.journal import (
    CHUNK_BYTES,
    JOURNAL,
    JournalHead,
    blob_of,
    checksums,
    journals_of,
    n_chunks_of,
    part_of,
    read_chunks,
    read_head,
    size_of,
    write_journal,
)
from localrun.hub.remote.repo import RemoteFile

ABANDONED_SECONDS = 60.0  # without a sign of life
SMALL_BYTES = 4 << 20  # up to here a file is on the disk before it is in its place


class LostError(Exception):
    """Another process has taken over this partial file."""


class Partial:
    """A partial file that this process owns. `chunks` has the checksum of every chunk that has arrived."""

    def __init__(self, journal: Path, size: int) -> None:
        self.journal = journal
        self.path = part_of(journal)
        self.size = size
        self.n_chunks = n_chunks_of(size)
        self.chunks = read_chunks(journal, self.n_chunks) if is_own(self.path) else {}
        self._claim = str(journal)  # asked for often
        self._lines = open_own(journal, "ab")
        self._lines.write(b"\n")  # ends a line that a crash has cut

    def reserve(self) -> None:
        """Allocate space for the whole file. OSError (ENOSPC) where there is none."""
        with open_own(self.path, "ab") as file:
            allocate(file.fileno(), self.size)

    def record(self, chunk: int, checksum: int) -> None:
        """Note that a chunk has arrived. LostError when another process owns the file now."""
        self.check_claim()
        _write_all(self._lines, b"%d %08x\n" % (chunk, checksum))
        self.chunks[chunk] = checksum

    def forget(self, chunk: int) -> None:
        """Mark a chunk as bad, by a checksum of -1 in the journal."""
        _write_all(self._lines, b"%d -1\n" % chunk)
        self.chunks.pop(chunk, None)

    def check_claim(self) -> None:
        if not os.path.exists(self._claim):
            raise LostError

    def sign_of_life(self) -> None:
        with suppress(OSError):
            os.utime(self.journal)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Start and end (exclusive) of a chunk, in bytes."""
        return chunk * CHUNK_BYTES, min(self.size, (chunk + 1) * CHUNK_BYTES)

    def damaged(self) -> list[int]:
        """Chunks that differ from their checksums in the journal."""
        now = dict(enumerate(checksums(self.path)))
        return [chunk for chunk, checksum in sorted(self.chunks.items()) if now.get(chunk) != checksum]

    def finish(self, blob: Path) -> None:
        """Turn a complete partial file into the blob. LostError when another process did so first.

        The journal stays, and is on disk before the rename: it says how far to trust a file that may not be on disk yet
        (unsynced.py).
        """
        is_small = self.size <= SMALL_BYTES
        try:
            write_out(self.path if is_small else self.journal)
            if not is_small:
                sync_folder(blob.parent)
            replace_file(self.path, blob)
        except FileNotFoundError:
            raise LostError from None
        self.close()
        if is_small:
            self.journal.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the file, so that another process may continue it."""
        self._lines.close()
        with suppress(OSError):
            os.utime(self.journal, (0, 0))

    def remove(self) -> None:
        self.close()
        remove_partial(self.journal)


def open_partial(blob: Path, repo: str, file: RemoteFile) -> Partial | None:
    """Open a partial file to write: an abandoned one, else a new one; None while a living process has one."""
    blob.parent.mkdir(parents=True, exist_ok=True)
    me = uuid.uuid4().hex[:12]
    for journal in sorted(journals_of(blob), key=lambda path: -size_of(path)):  # the one that got furthest first
        head = read_head(journal)
        if head is None and not os.path.lexists(journal):  # taken over since it was listed: its part has an owner
            return None
        if head is None or head.size != file.size:
            remove_partial(journal)
        elif is_alive(journal, head):
            return None
        elif _is_planted(part_of(journal)):
            remove_partial(journal)
        else:
            taken = _take_over(journal, me, repo, file)
            return Partial(taken, file.size) if taken else None
    mine = blob.with_name(f"{blob.name}.{me}.{me}{JOURNAL}")
    write_journal(mine, repo, file, {})
    if any(_goes_first(journal, mine) and _lives(journal) for journal in journals_of(blob)):
        mine.unlink(missing_ok=True)
        return None
    return Partial(mine, file.size)


def _is_planted(part: Path) -> bool:
    """Whether a link or a device is in the place of a partial file; localrun must not write to it."""
    return os.path.lexists(part) and not is_own(part)


def _goes_first(journal: Path, mine: Path) -> bool:
    """Whether the other of two downloads that began at once goes first: the one with the smaller name.

    One that continues an older file also goes first; a listing may miss it while its journal is renamed.
    """
    _, part, owner = journal.name.removesuffix(JOURNAL).split(".")
    return journal.name < mine.name or part != owner


def _take_over(journal: Path, me: str, repo: str, file: RemoteFile) -> Path | None:
    """Take over an abandoned partial file by a journal of this process; None when another process was faster.

    The new journal is in place before the old one goes, so the file is never without an owner.
    """
    etag, part, _ = journal.name.split(".", 2)
    mine = journal.with_name(f"{etag}.{part}.{me}{JOURNAL}")
    write_journal(mine, repo, file, read_chunks(journal, n_chunks_of(file.size)))
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
    part_of(journal).unlink(missing_ok=True)
    journal.unlink(missing_ok=True)


def remove_leftovers(blob: Path) -> None:
    """Remove partial files of a file that another process has completed."""
    for journal in journals_of(blob):
        if part_of(journal).exists() and not _lives(journal):
            remove_partial(journal)


def orphans(blobs: Path) -> list[Path]:
    """Journals whose files no longer exist."""
    journals = blobs.glob(f"*{JOURNAL}")
    return [one for one in journals if not (blob_of(one).exists() or part_of(one).exists() or _lives(one))]


def is_abandoned(journal: Path) -> bool:
    """Whether this is an unfinished download on which no process works."""
    head = read_head(journal)
    return head is not None and not is_alive(journal, head)


def is_alive(journal: Path, head: JournalHead) -> bool:
    """Whether a process still works on a partial file."""
    if head.host == platform.node():
        try:
            process = psutil.Process(head.pid)
            if abs(process.create_time() - head.started) > 1 or process.status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.Error:
            return False
    try:
        return time.time() - journal.stat().st_mtime < ABANDONED_SECONDS
    except OSError:
        return False


def _lives(journal: Path) -> bool:
    head = read_head(journal)
    return head is not None and is_alive(journal, head)


def find_partials(blobs: Path) -> Iterator[tuple[Path, JournalHead, int]]:
    """Unfinished downloads in a folder of blobs: (journal, its head, bytes on disk)."""
    for journal in sorted(blobs.glob(f"*{JOURNAL}")):
        head = read_head(journal)
        if head is not None and part_of(journal).exists() and not blob_of(journal).exists():
            chunks = read_chunks(journal, n_chunks_of(head.size))
            yield journal, head, min(head.size, len(chunks) * CHUNK_BYTES)


def allocate(descriptor: int, size: int) -> None:
    """Make a file `size` bytes long and allocate its blocks, where the system can."""
    if hasattr(os, "posix_fallocate") and size:
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
    os.ftruncate(descriptor, size)


def write_out(path: Path) -> None:
    """Wait until the disk has a file. OSError when it does not take it."""
    with open(path, "r+b") as file:
        sync(file.fileno())


def _write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
