"""How fast the disk that packed weights are kept on is read: measured once, and remembered. Torch-free."""

import mmap
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from localrun.backends.interface import Backend
from localrun.base.machine import memory
from localrun.base.paths import writable_folder
from localrun.fit.machine_file import read_machine, write_machine

PROBE_BYTES = 64 << 20
VALID_SECONDS = 30 * 86400.0


def may_map(backend: Backend) -> bool:
    """Whether weights may stay on disk where memory is short: there is a folder for them, and files take no memory."""
    return backend.maps_weights and not memory().counts_files and writable_folder("cache") is not None


def disk_rate() -> float:
    """Bytes a second that mapped files give while they are not in memory; 0 where nobody can tell."""
    home = writable_folder("cache")
    if home is None or not hasattr(os, "posix_fadvise"):
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
    """Bytes a second of a file in `folder`, read the way weights are. Raises OSError."""
    with tempfile.TemporaryFile(dir=folder) as file:
        piece = os.urandom(1 << 20)  # nothing that a file system could leave out
        for _ in range(PROBE_BYTES >> 20):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(file.fileno(), PROBE_BYTES, access=mmap.ACCESS_READ) as mapped:
            started = time.perf_counter()
            for start in range(0, PROBE_BYTES, 1 << 20):
                mapped.madvise(mmap.MADV_WILLNEED, start, 1 << 20)
                mapped[start : start + (1 << 20)].count(b"\0")
            return PROBE_BYTES / (time.perf_counter() - started)
