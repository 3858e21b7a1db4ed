"""How fast the disk that packed weights are kept on is read: measured once, and remembered. Torch-free."""

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
    """Whether weights may stay on disk where memory is short: there is a folder for them, and files take no memory."""
    return backend.maps_weights and not memory().counts_files and writable_folder("cache") is not None


def disk_rate() -> float:
    """Bytes a second that mapped files give while they are not in memory; 0 where unknown."""
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
    """Bytes a second of a file in `folder`, read the way weights are: the better half of it, as others read, too.

    Raises OSError.
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
    """To have these pieces in memory, each asked for at once: one byte of every page is looked at."""
    started = time.perf_counter()
    for start in pieces:
        if sys.platform != "win32":
            mapped.madvise(mmap.MADV_WILLNEED, start, PIECE)
        mapped[start : start + PIECE : mmap.PAGESIZE]
    return time.perf_counter() - started
