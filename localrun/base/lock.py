"""A lock over all threads and processes, by a file that everyone who changes something locks first."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any = None
msvcrt: Any = None
with suppress(ImportError):
    import fcntl
with suppress(ImportError):
    import msvcrt

POLL_SECONDS = 0.01  # where the system has no way to wait for long
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until nobody else has the file locked. It is made if need be; a process that dies lets go.

    On a file system without locks there is no wait. Raises OSError where the file cannot be opened.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for(fd)
        yield
    finally:
        os.close(fd)  # and so lets go


@contextmanager
def locked_on_windows(fd: int, offset: int) -> Iterator[None]:
    """Wait until nobody else has a byte of an open file locked; elsewhere nothing happens. Moves the place in the file.

    The byte need not be there. Its offset is below 2^31: the C library of Windows takes no other.
    """
    if msvcrt is None:
        yield
        return
    os.lseek(fd, offset, os.SEEK_SET)
    _wait_for_byte(fd)
    try:
        yield
    finally:
        os.lseek(fd, offset, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)


def _wait_for(fd: int) -> None:
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX)
        elif msvcrt is not None:
            _wait_for_byte(fd)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def _wait_for_byte(fd: int) -> None:
    """The one where the file stands."""
    while True:
        with suppress(PermissionError):
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            return
        time.sleep(POLL_SECONDS)
