"""One at a time, over all threads and processes: whoever changes something locks the same file."""

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

    On a file system that knows no locks nobody waits. Raises OSError where the file cannot be opened.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for(fd)
        yield
    finally:
        os.close(fd)  # and so lets go


def _wait_for(fd: int) -> None:
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX)
        while msvcrt is not None and not _is_ours(fd):
            time.sleep(POLL_SECONDS)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def _is_ours(fd: int) -> bool:
    try:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    except PermissionError:
        return False
    return True
