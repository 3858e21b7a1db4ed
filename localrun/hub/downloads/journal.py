"""Journal of a download: its writer, then one line for each chunk that has arrived, with number and CRC-32.

<etag>.<part>.<owner>.localrun-journal
"""

import hashlib
import json
import os
import platform
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from localrun.base.dataclass import dataclass
from localrun.base.small_file import open_regular, read_small
from localrun.hub.disk.own_files import replace_own
from localrun.hub.remote.repo import RemoteFile

CHUNK_BYTES = 1 << 20  # what a kill can cost, a connection
PART, JOURNAL = ".localrun-part", ".localrun-journal"
_MAX_HEAD, _MAX_LINES = 1 << 16, 1 << 10  # bytes of a journal: its first line, and all others for each chunk
_MAX_SIZE = 1 << 50
_ROUGH_SECONDS = 30  # in the time of a boot: clocks are set while a machine runs


@dataclass(frozen=True, slots=True)
class JournalHead:
    """The first line of a journal."""

    repo: str
    file: str
    size: int
    host: str
    pid: int
    started: float  # of the process, seconds since 1970: a number of a process may be used again
    boot: str = ""  # in which boot of the machine it writes


def read_head(journal: Path) -> JournalHead | None:
    """Read the first line; None for a journal that cannot be read."""
    try:
        with open_regular(journal, follow_links=False) as file:
            head = JournalHead(**json.loads(file.read(_MAX_HEAD).partition(b"\n")[0]))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    words = (head.repo, head.file, head.host, head.boot)
    numbers = type(head.size) is int and type(head.pid) is int and type(head.started) in (int, float)
    return head if numbers and 0 <= head.size < _MAX_SIZE and all(type(word) is str for word in words) else None


def read_chunks(journal: Path, n_chunks: int) -> dict[int, int]:
    """Checksums by chunk number. Malformed lines are ignored, as is a file longer than its chunks need."""
    chunks: dict[int, int] = {}
    for line in read_lines(journal, n_chunks).split(b"\n")[:-1]:
        number, _, checksum = line.partition(b" ")
        with suppress(ValueError):
            chunk, value = int(number), int(checksum, 16)
            if not 0 <= chunk < n_chunks:
                continue
            if value < 0:
                chunks.pop(chunk, None)
            elif len(checksum.strip()) == 8:
                chunks[chunk] = value
    return chunks


def read_lines(journal: Path, n_chunks: int) -> bytes:
    """Lines after the first; none where the journal cannot be read or is longer than its chunks need."""
    try:
        whole = read_small(journal, _MAX_HEAD + _MAX_LINES * max(n_chunks, 1), follow_links=False)
    except OSError:
        return b""
    return whole.partition(b"\n")[2]


def write_journal(journal: Path, repo: str, file: RemoteFile, chunks: dict[int, int]) -> None:
    """Write a journal of this process; it appears complete or not at all."""
    started = psutil.Process().create_time()
    head = JournalHead(repo, file.path, file.size, platform.node(), os.getpid(), started, boot_id())
    replace_journal(journal, head, b"".join(b"%d %08x\n" % line for line in chunks.items()))


def replace_journal(journal: Path, head: JournalHead, lines: bytes) -> None:
    """Replace the journal by this head and these lines."""
    replace_own(journal, json.dumps(asdict(head)).encode() + b"\n" + lines)


def journals_of(blob: Path) -> list[Path]:
    """The journals of one file: of its partial downloads, or of the complete file."""
    return list(blob.parent.glob(f"{blob.name}.*{JOURNAL}"))


def part_of(journal: Path) -> Path:
    return journal.with_name(".".join(journal.name.split(".")[:2]) + PART)


def blob_of(journal: Path) -> Path:
    return journal.with_name(journal.name.partition(".")[0])


def n_chunks_of(size: int) -> int:
    return -(-size // CHUNK_BYTES)


def checksums(path: Path) -> Iterator[int]:
    """CRC-32 of every chunk of a file on disk."""
    with open_regular(path) as file:
        while data := file.read(CHUNK_BYTES):
            yield zlib.crc32(data)


def begin_hash(etag: str, size: int) -> Any:
    """New hash object for an etag: sha256, or git's sha1 of a small file."""
    return hashlib.sha256() if len(etag) == 64 else hashlib.sha1(b"blob %d\0" % size)


def size_of(path: Path) -> int:
    """Size of a file; 0 where it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@cache
def boot_id() -> str:
    """Identifier of this boot of the machine: the same for every process until the next start.

    What was written during this boot can be read, from memory if not from the disk.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return f"boot at {round(psutil.boot_time() / _ROUGH_SECONDS)}"
