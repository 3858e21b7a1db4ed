"""Opening and reading files that may be anything: pipes, devices, half a download, replaced while in use."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from localrun.base import small_file
from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError, ModelFileError, NotFoundError
from localrun.base.sanitize import clean
from localrun.base.small_file import NotAFileError, TooBigError

Fetch = Callable[[int, int], bytes | bytearray]  # (offset, n_bytes) -> n_bytes, or fewer at the end of the file

_MAX_SHOWN = 80
_COARSE_NS = 2_000_000_000  # from one time to the next, on file systems that know no parts of a second


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity of one version of a file: `exact`, with all that the system knows of it.

    Two are equal by size and time alone: network file systems invent new inodes. `is_settled`: the file was last
    written so long before this was taken that its time would tell the next change, too.
    """

    size: int
    mtime_ns: int
    exact: tuple[int, ...] = field(default=(), compare=False)  # size, mtime, ctime, inode, device
    is_settled: bool = field(default=True, compare=False)

    @property
    def inode(self) -> int:
        return self.exact[3]


def shown(text: str) -> str:
    """Untrusted text as it may stand in a message: quoted, escapes visible, cut when long."""
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")


def bad_file(code: str, message: str, path: Path, offset: int | None = None, hint: str = "") -> ModelFileError:
    return ModelFileError(code, message, path=clean(str(path), keep_newlines=False), offset=offset, hint=hint)


def open_regular(path: Path) -> BinaryIO:
    """An unbuffered file to read from. Never blocks on a pipe; anything but a regular file is refused."""
    with _model_file_errors(path):
        return small_file.open_regular(path)


def read_small(path: Path, max_bytes: int) -> bytes:
    """A whole file that has to be small."""
    with _model_file_errors(path):
        return small_file.read_small(path, max_bytes)


def list_folder(folder: Path) -> list[str]:
    """The names in a folder, sorted."""
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise _unreadable(folder, error) from error


@contextmanager
def _model_file_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about opening a file into an error of our family."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a NUL in the path
        raise NotFoundError(f"no such file: {shown(str(path))}", "check the path, or see `localrun list`") from error
    except NotAFileError as error:
        raise bad_file("NOT_A_FILE", error.strerror, path, hint="give the path of a model file") from error
    except TooBigError as error:
        raise bad_file("TOO_BIG", error.strerror, path) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ModelFileError:
    reason = error.strerror or type(error).__name__
    return bad_file("UNREADABLE", f"cannot be read: {reason}", path, hint="check the permissions and the disk")


def stamp_of(file: BinaryIO) -> Stamp:
    status = os.fstat(file.fileno())
    size, mtime = status.st_size, status.st_mtime_ns
    is_fine = mtime % 1_000_000_000 != 0
    exact = (size, mtime, status.st_ctime_ns, status.st_ino, status.st_dev)
    return Stamp(size, mtime, exact, is_fine or abs(time.time_ns() - mtime) > _COARSE_NS)


def stamp_at(path: Path) -> Stamp:
    with open_regular(path) as file:
        return stamp_of(file)


def was_written_to(path: Path, stamp: Stamp) -> bool:
    """Whether the file that was `stamp` has changed. One that is gone, or whose place another has taken, has not: it
    stays as it was for processes that have it open or mapped."""
    try:
        now = os.stat(path)
    except (FileNotFoundError, PermissionError):
        return False
    except OSError:  # it cannot be read any more
        return True
    return now.st_ino == stamp.inode and (now.st_size, now.st_mtime_ns) != (stamp.size, stamp.mtime_ns)


def read_up_to(file: BinaryIO, path: Path, offset: int, n_bytes: int) -> bytearray:
    """`n_bytes` from `offset` on, or as many as there are before the end of the file."""
    try:
        data = bytearray(n_bytes)
        view, done = memoryview(data), 0
        file.seek(offset)
        while done < n_bytes and (n := file.readinto(view[done:])):  # type: ignore[attr-defined]
            done += n
        view.release()
        del data[done:]
        return data
    except MemoryError:
        message = f"no memory for {n_bytes:,} bytes of {shown(path.name)}"
        raise DoesNotFitError(message, "close other programs, or take a smaller model") from None
    except OSError as error:
        raise _unreadable(path, error) from error


def fetch_from(path: Path) -> Fetch:
    """The bytes of a file on disk, for readers of headers; opened again for each read."""

    def fetch(offset: int, n_bytes: int) -> bytearray:
        with open_regular(path) as file:
            return read_up_to(file, path, offset, n_bytes)

    return fetch


def read_range(path: Path, offset: int, n_bytes: int, stamp: Stamp) -> bytearray:
    """Exactly `n_bytes` of a file that was `stamp` when it was checked."""
    with open_regular(path) as file:
        if stamp_of(file) == stamp and len(data := read_up_to(file, path, offset, n_bytes)) == n_bytes:
            return data
    raise bad_file("CHANGED", "the file changed after it was opened", path, offset, "load the model again")


def map_range(path: Path, offset: int, n_bytes: int, stamp: Stamp) -> memoryview:
    """`n_bytes` of a file that was `stamp` when it was checked, read as they are looked at and never all at once.

    The file is open as long as the view.
    """
    import mmap  # few models have tensors that stay in the file

    start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    with open_regular(path) as file:
        if stamp_of(file) != stamp or stamp.size < offset + n_bytes:
            raise bad_file("CHANGED", "the file changed after it was opened", path, offset, "load the model again")
        try:
            mapped = mmap.mmap(file.fileno(), offset - start + n_bytes, access=mmap.ACCESS_READ, offset=start)
        except OSError as error:
            raise _unreadable(path, error) from error
    if sys.platform != "win32":
        mapped.madvise(mmap.MADV_RANDOM)  # rows are far apart: reading ahead would be for nothing
    return memoryview(mapped)[offset - start :]
