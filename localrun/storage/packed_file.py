"""One packed matrix in a file of its own: written once, then mapped by every process that runs the model.

Its pages are read from disk on first use, are never dirty, and are evicted when memory is short. The file appears by
rename, complete; a removed file stays readable for processes that mapped it. After the matrix come its seal (its source
and layout), the time that the file is given, and a checksum.
"""

import errno
import mmap
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import DoesNotFitError
from localrun.base.files import replace_file, sync, sync_folder
from localrun.base.lock import locked
from localrun.base.small_file import open_regular
from localrun.base.units import gib
from localrun.formats.files import Stamp, stamp_of

SUFFIX, UNFINISHED = ".packed", ".tmp"
LOCK = "lock"  # in a folder of such files; held by the process that writes one
SYNC_BYTES = 64 << 20  # written at a time: what is not on the disk yet takes memory that cannot be reclaimed
CHECKED_BYTES = 1 << 20  # read at a time: nothing urgent waits longer than for these
FORM = 2  # of these files; raised where they come to mean something else
_FOOTER = struct.Struct("<32sqI")  # seal, the file's time (ns since 1970), CRC-32 of the matrix
FOOTER_BYTES = _FOOTER.size
_WHOLE_NS = 2_000_000_000  # times in these steps are kept as they are by every file system
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


class DiskError(DoesNotFitError):
    """Weights that do not fit in memory do not fit on the disk either."""


class PackedFile:
    """The file of a matrix of `n_bytes`. A file with another seal, or one written to since, does not count.

    `stamp`: of the file when it was mapped.
    """

    def __init__(self, path: Path, n_bytes: int, seal: bytes) -> None:
        self.path, self.n_bytes, self.seal = path, n_bytes, seal
        self.stamp: Stamp | None = None

    @property
    def known_by(self) -> list[int]:
        """Identity of the mapped file, which differs from any other's, and from its own once it is written to."""
        return list(self.stamp.exact) if self.stamp else []

    def is_there(self) -> bool:
        """Whether the file is complete, has this seal, and is unchanged by size and time."""
        try:
            with open_regular(self.path) as file:
                return self._is_this(file.fileno())
        except OSError:
            return False

    def was_changed(self) -> bool:
        """Whether another file is in its place."""
        return self.path.exists() and not self.is_there()

    def mapped(self, pack: Callable[[], Iterator[memoryview]], in_parts: bool = False) -> memoryview:
        """The matrix, uint8 [n_bytes], read-only; written first, from the pieces of `pack`, where there is none.

        `in_parts`: a step reads ranges of it that it names before; read-ahead around them is useless. Of several
        processes one writes, and the others wait. Raises DiskError where the file cannot be written.
        """
        try:
            if not self.is_there():
                self.write(pack)
            return self._map(in_parts)
        except OSError as error:
            raise self._failure(error) from error

    def found(self) -> memoryview | None:
        """The matrix, uint8 [n_bytes], read-only, where the file exists."""
        try:
            return self._map(in_parts=False)
        except OSError:
            return None

    def write(self, pack: Callable[[], Iterator[memoryview]]) -> None:
        """Write the pieces of `pack` unless the file exists. Of several processes one writes. Raises OSError."""
        with locked(self.path.parent / LOCK):
            if not self.is_there():
                self._write(pack())

    def is_damaged(self, before_piece: Callable[[], None] = lambda: None) -> bool:
        """Read the mapped file and compare it with its checksum; True where it differs.

        `before_piece` is called before each piece. A removed file counts as undamaged.
        """
        try:
            with open_regular(self.path) as file:
                if not self._is_mapped(file.fileno()):
                    return False
                buffer = memoryview(bytearray(CHECKED_BYTES))
                left, found = self.n_bytes, 0
                while left:
                    before_piece()
                    n = file.readinto(buffer[: min(left, CHECKED_BYTES)])
                    if not n:
                        return True
                    left, found = left - n, zlib.crc32(buffer[:n], found)
                return not self._is_this(file.fileno()) or self._footer(file.fileno())[2] != found
        except FileNotFoundError:
            return False
        except OSError:  # the disk does not give it back
            return True

    def remove(self) -> None:
        """Remove the mapped file, unless another is in its place. Raises OSError."""
        with suppress(FileNotFoundError), locked(self.path.parent / LOCK):
            with open_regular(self.path) as file:
                is_mapped = self._is_mapped(file.fileno())
            if is_mapped:
                self.path.unlink()

    def _is_mapped(self, fd: int) -> bool:
        return self.stamp is None or os.fstat(fd).st_ino == self.stamp.inode

    def _is_this(self, fd: int) -> bool:
        status = os.fstat(fd)
        if status.st_size != self.n_bytes + FOOTER_BYTES:
            return False
        seal, written, _ = self._footer(fd)
        return seal == self.seal and status.st_mtime_ns == written

    def _footer(self, fd: int) -> tuple[bytes, int, int]:
        """Seal, time and checksum of a file of the right size."""
        os.lseek(fd, self.n_bytes, os.SEEK_SET)
        return _FOOTER.unpack(os.read(fd, FOOTER_BYTES))

    def _map(self, in_parts: bool) -> memoryview:
        with open_regular(self.path) as file:
            if not self._is_this(file.fileno()):
                raise OSError(errno.EIO, "it was replaced")
            self.stamp = stamp_of(file)
            mapped = mmap.mmap(file.fileno(), self.n_bytes, access=mmap.ACCESS_READ)
        if in_parts and sys.platform != "win32":
            mapped.madvise(mmap.MADV_RANDOM)
        return memoryview(mapped)

    def _write(self, pieces: Iterator[memoryview]) -> None:
        unfinished = self.path.with_name(self.path.name + UNFINISHED)
        written, checksum = time.time_ns() // _WHOLE_NS * _WHOLE_NS, 0
        try:
            with open(unfinished, "wb", buffering=0, opener=_private) as file:
                waiting = 0
                for piece in pieces:
                    _write_all(file.fileno(), piece)
                    checksum = zlib.crc32(piece, checksum)
                    waiting += piece.nbytes
                    if waiting >= SYNC_BYTES:
                        sync(file.fileno())
                        waiting = 0
                _write_all(file.fileno(), memoryview(_FOOTER.pack(self.seal, written, checksum)))
                sync(file.fileno())
            os.utime(unfinished, ns=(written, written))
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


def _write_all(fd: int, data: memoryview) -> None:
    while data.nbytes:
        data = data[os.write(fd, data) :]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
