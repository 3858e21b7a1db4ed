"""Files of our own: nobody else's to read, and never half written."""

import os
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


def write_whole(path: Path, text: str) -> None:
    """Put `text` in the place of a file, all of it or, with OSError, none. What a link leads to is written, not it."""
    path = Path(os.path.realpath(path))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:  # mode 0600
        fresh = Path(file.name)
        try:
            file.write(text)
            file.close()
            replace_file(fresh, path)
        except BaseException:
            file.close()  # Windows removes no open file
            with suppress(OSError):
                fresh.unlink()
            raise


def append(fd: int, data: bytes) -> None:
    """Write at the end of a file that was opened to be appended to, whoever else does so. OSError unless all of it was.

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
