"""Read rate of the disk with the packed weights: measured once and stored. Torch-free."""

import mmap
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from localrun.backends.interface import Backend
from localrun.base.machine import memory
from localrun.base.paths import writable_folder
from localrun.fit.machine_rates import read_machine, write_machine

PROBE_BYTES, PIECE = 64 << 20, 8 << 20  # about what a step asks for at once of a layer's experts
VALID_SECONDS = 30 * 86400.0


def may_map(backend: Backend) -> bool:
    """Whether weights may stay on disk where memory is short.

    There must be a folder for them, and the memory limit must not count file pages.
    """
    return backend.maps_weights and not memory().counts_files and writable_folder("cache") is not None


def disk_rate() -> float:
    """Bytes per second of mapped files that are not in memory; 0 where unknown."""
    home = writable_folder("cache")
    if home is None or sys.platform != "linux":
        return 0.0  # what was just written could only be read from memory
    key = f"disk {home.stat().st_dev}"
    known = read_machine().get(key, {})
    with suppress(KeyError, TypeError, ValueError):
        if 0 <= time.time() - float(known["measured_at"]) < VALID_SECONDS and float(known["read_bytes"]) > 0:
            return float(known["read_bytes"])
    with suppress(OSError):
        rate = probe(home)
        write_machine(key, {"read_bytes": rate, "measured_at": time.time()})
        return rate
    return 0.0


def probe(folder: Path) -> float:
    """Measure the bytes per second of a file in `folder`, read as weights are; the faster half of the pieces counts.

    Other programs may read at the same time. Raises OSError.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(PROBE_BYTES // PIECE):
            file.write(os.urandom(PIECE))  # nothing that a file system could leave out
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(file.fileno(), PROBE_BYTES, access=mmap.ACCESS_READ) as mapped:
            half = PROBE_BYTES // 2
            return half / min(_seconds(mapped, range(start, start + half, PIECE)) for start in (0, half))


def _seconds(mapped: mmap.mmap, pieces: range) -> float:
    """Seconds to bring these pieces into memory: each is requested, then one byte of every page is read."""
    started = time.perf_counter()
    for start in pieces:
        if sys.platform != "win32":
            mapped.madvise(mmap.MADV_WILLNEED, start, PIECE)
        mapped[start : start + PIECE : mmap.PAGESIZE]
    return time.perf_counter() - started
