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
from localrun.hub.journal import (
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
from localrun.hub.own_files import is_own, open_own
from localrun.hub.remote_repo import RemoteFile

ABANDONED_SECONDS = 60.0  # without a sign of life
SMALL_BYTES = 4 << 20  # up to here a file is on the disk before it is in its place


class LostError(Exception):
    """Another process has taken this part over."""


class Partial:
    """A part that this process owns. `chunks` has the checksum of every chunk that is there."""

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
        """Make room for the whole file. OSError (ENOSPC) where there is none."""
        with open_own(self.path, "ab") as file:
            allocate(file.fileno(), self.size)

    def record(self, chunk: int, checksum: int) -> None:
        """A chunk is there. LostError when the part is no longer ours."""
        self.check_claim()
        _write_all(self._lines, b"%d %08x\n" % (chunk, checksum))
        self.chunks[chunk] = checksum

    def forget(self, chunk: int) -> None:
        """Mark a chunk as bad: a checksum of -1 tells the next reader of the journal."""
        _write_all(self._lines, b"%d -1\n" % chunk)
        self.chunks.pop(chunk, None)

    def check_claim(self) -> None:
        if not os.path.exists(self._claim):
            raise LostError

    def sign_of_life(self) -> None:
        with suppress(OSError):
            os.utime(self.journal)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """First byte of a chunk, and the one behind its last."""
        return chunk * CHUNK_BYTES, min(self.size, (chunk + 1) * CHUNK_BYTES)

    def damaged(self) -> list[int]:
        """The chunks that are no longer what the journal says."""
        now = dict(enumerate(checksums(self.path)))
        return [chunk for chunk, checksum in sorted(self.chunks.items()) if now.get(chunk) != checksum]

    def finish(self, blob: Path) -> None:
        """Make a complete part the file itself. LostError when another process was quicker.

        The journal stays, and is on the disk before: it says how far to trust a file that may not be (unsynced.py).
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
        """Release the part, so that another process may continue it."""
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
    """Whether a link or a device is in the place of a part: somebody else's, which must not be written to."""
    return os.path.lexists(part) and not is_own(part)


def _goes_first(journal: Path, mine: Path) -> bool:
    """Of two that began at once the one whose name comes first; and any that goes on with an older part, which a
    listing may miss while its journal is renamed."""
    _, part, owner = journal.name.removesuffix(JOURNAL).split(".")
    return journal.name < mine.name or part != owner


def _take_over(journal: Path, me: str, repo: str, file: RemoteFile) -> Path | None:
    """Our journal of somebody's abandoned part; None when another one was quicker.

    Ours is in place, and alive, before the old one goes: the part is never seen without an owner.
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
    """Remove the parts of a file that somebody else has completed."""
    for journal in journals_of(blob):
        if part_of(journal).exists() and not _lives(journal):
            remove_partial(journal)


def orphans(blobs: Path) -> list[Path]:
    """The journals of files that are gone."""
    journals = blobs.glob(f"*{JOURNAL}")
    return [one for one in journals if not (blob_of(one).exists() or part_of(one).exists() or _lives(one))]


def is_abandoned(journal: Path) -> bool:
    """Whether this is still a download, and no process works on it."""
    head = read_head(journal)
    return head is not None and not is_alive(journal, head)


def is_alive(journal: Path, head: JournalHead) -> bool:
    """Whether somebody still works on a part."""
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
    """Unfinished downloads in a folder of blobs: (journal, what it is, bytes there)."""
    for journal in sorted(blobs.glob(f"*{JOURNAL}")):
        head = read_head(journal)
        if head is not None and part_of(journal).exists() and not blob_of(journal).exists():
            chunks = read_chunks(journal, n_chunks_of(head.size))
            yield journal, head, min(head.size, len(chunks) * CHUNK_BYTES)


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


def write_out(path: Path) -> None:
    """Wait until the disk has a file. OSError when it does not take it."""
    with open(path, "r+b") as file:
        sync(file.fileno())


def _write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
