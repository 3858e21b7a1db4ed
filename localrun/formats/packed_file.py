"""One packed matrix in a file of its own: written once, and then mapped by every process that runs the model.

Pages of it come from the disk when they are looked at, are never dirty, and go when memory is short. The file appears
by rename, whole; nobody else has a reason to touch it, and one that is removed stays readable for those who mapped it.
"""

import errno
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localrun.base.errors import DoesNotFitError
from localrun.base.files import replace_file, sync, sync_folder
from localrun.base.lock import locked
from localrun.base.units import gib

SUFFIX, UNFINISHED = ".packed", ".tmp"
LOCK = "lock"  # in a folder of such files: whoever writes one holds it
SYNC_BYTES = 64 << 20  # written at a time: what is not on the disk yet takes memory that nobody can take back
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


class DiskError(DoesNotFitError):
    """Weights that have no room in memory find none on the disk either."""


class PackedFile:
    """`n_bytes` of a matrix and, behind them, its `seal`: what it was made of and how. Without that it is another."""

    def __init__(self, path: Path, n_bytes: int, seal: bytes) -> None:
        self.path, self.n_bytes, self.seal = path, n_bytes, seal

    def is_there(self) -> bool:
        """Whether it is whole, and this one."""
        try:
            with open(self.path, "rb") as file:
                return self._is_this(file.fileno())
        except OSError:
            return False

    def mapped(self, pack: Callable[[], Iterator[memoryview]], in_parts: bool = False) -> memoryview:
        """The matrix, uint8 [n_bytes], read-only; where it is not there, what `pack` gives piece by piece is written.

        `in_parts`: a step reads stretches of it that it names before: nothing around them is of use.

        Of several processes one writes, and the others wait. Raises DiskError where it cannot be written.
        """
        try:
            if not self.is_there():
                self.write(pack)
            return self._map(in_parts)
        except OSError as error:
            raise self._failure(error) from error

    def found(self) -> memoryview | None:
        """The matrix, uint8 [n_bytes], read-only, where it is there."""
        try:
            return self._map(in_parts=False)
        except OSError:
            return None

    def write(self, pack: Callable[[], Iterator[memoryview]]) -> None:
        """What `pack` gives piece by piece, where it is not there. Of several processes one writes. Raises OSError."""
        with locked(self.path.parent / LOCK):
            if not self.is_there():
                self._write(pack())

    def _is_this(self, fd: int) -> bool:
        if os.fstat(fd).st_size != self.n_bytes + len(self.seal):
            return False
        os.lseek(fd, self.n_bytes, os.SEEK_SET)
        return os.read(fd, len(self.seal)) == self.seal

    def _map(self, in_parts: bool) -> memoryview:
        with open(self.path, "rb") as file:
            if not self._is_this(file.fileno()):
                raise OSError(errno.EIO, "it was replaced")
            mapped = mmap.mmap(file.fileno(), self.n_bytes, access=mmap.ACCESS_READ)
        if in_parts and sys.platform != "win32":
            mapped.madvise(mmap.MADV_RANDOM)
        return memoryview(mapped)

    def _write(self, pieces: Iterator[memoryview]) -> None:
        unfinished = self.path.with_name(self.path.name + UNFINISHED)
        try:
            with open(unfinished, "wb", buffering=0, opener=_private) as file:
                waiting = 0
                for piece in pieces:
                    _write_all(file.fileno(), piece)
                    waiting += piece.nbytes
                    if waiting >= SYNC_BYTES:
                        sync(file.fileno())
                        waiting = 0
                _write_all(file.fileno(), memoryview(self.seal))
                sync(file.fileno())
            replace_file(unfinished, self.path)
            sync_folder(self.path.parent)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def _failure(self, error: OSError) -> DiskError:
        if error.errno in FULL:
            what = f"the disk of {self.path.parent} is full: {gib(self.n_bytes)} more of packed weights do not fit"
            return DiskError(what, "free some space, or set LOCALRUN_HOME to a larger disk")
        reason = error.strerror or type(error).__name__
        return DiskError(
            f"weights larger than memory cannot be kept in {self.path.parent}: {reason}",
            "set LOCALRUN_HOME to a folder on a disk that can be written to",
        )


@dataclass(slots=True)
class KeptMatrix:
    """One that memory holds, and the disk for the next start: found there, or packed by this one. uint8 [n_bytes]"""

    found: memoryview | None = None
    packed: memoryview | None = None


def _write_all(fd: int, data: memoryview) -> None:
    while data.nbytes:
        data = data[os.write(fd, data) :]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
