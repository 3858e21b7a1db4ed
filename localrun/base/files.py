"""Files of our own: readable by the user only, and never half written."""

import os
import re
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from localrun.base.lock import locked_on_windows

fcntl: Any = None
with suppress(ImportError):
    import fcntl

_LOCKED_AT = (1 << 31) - 2  # a byte that no file of ours has

_BUSY_SECONDS = (0.01, 0.1, 0.5, 1.0)

_UNFINISHED = re.compile(r"tmp[a-z0-9_]{8}")  # as tempfile names files
_UNFINISHED_SECONDS = 3600.0  # longer than any write of a small file takes

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(at: Path | int) -> None:
    """Take the rights of other users from a file or folder, or an open one, where it has any and is ours."""
    if os.name == "posix":
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(at).st_mode)
            if mode & _OTHERS:
                os.chmod(at, mode & ~_OTHERS)


def replace_file(fresh: Path | str, path: Path | str) -> None:
    """Put one file in the place of another, at once. Raises OSError.

    Windows refuses while anybody has one of them open, as scanners for viruses do for moments after each write.
    """
    for seconds in _BUSY_SECONDS if sys.platform == "win32" else ():
        with suppress(PermissionError):
            return os.replace(fresh, path)
        time.sleep(seconds)
    return os.replace(fresh, path)


def write_whole(path: Path, content: str | bytes) -> None:
    """Put `content` in the place of a file, all of it or, with OSError, none. A link stays, and the file that it leads
    to is written; one to a device goes. UnicodeEncodeError for text with lone surrogates."""
    real = Path(os.path.realpath(path))
    path = real if real.is_file() or not real.exists() else path
    data = content.encode() if isinstance(content, str) else content
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:  # mode 0600
        fresh = Path(file.name)
        try:
            file.write(data)
            file.close()
            replace_file(fresh, path)
        except BaseException:
            file.close()  # Windows removes no open file
            with suppress(OSError):
                fresh.unlink()
            raise


def remove_unfinished(folder: Path) -> None:
    """Remove what `write_whole` left in a folder of our own when its process was killed."""
    oldest = time.time() - _UNFINISHED_SECONDS
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)


def append(fd: int, data: bytes) -> None:
    """Append to a file that other processes may append to as well. OSError unless everything was written.

    POSIX keeps the writes of several processes apart; Windows looks for the end first and then writes.
    """
    with locked_on_windows(fd, _LOCKED_AT):
        if os.write(fd, data) < len(data):
            raise OSError(28, "no space left on the device")


def sync(fd: int) -> None:
    """Wait until the disk has what was written, and not only its cache, where fsync of macOS stops. Raises OSError."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        with suppress(OSError):  # not every file system can
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
    os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder, where the system can promise that. Raises OSError."""
    if os.name == "posix":
        fd = os.open(folder, os.O_RDONLY)
        try:
            sync(fd)
        finally:
            os.close(fd)


def disk_usage(path: Path) -> "shutil._ntuple_diskusage":
    """Usage of the disk that a path is on, or will be on. Raises OSError."""
    return shutil.disk_usage(next(place for place in (path, *path.parents) if place.exists()))
