"""Files that localrun writes into a shared cache: never through a link, and never a file with a second name."""

import errno
import os
import stat
import uuid
from io import FileIO
from pathlib import Path
from typing import Literal

from localrun.base.files import replace_file

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_own(path: Path, mode: Literal["ab", "xb", "r+b"]) -> FileIO:
    """Open for writing, unbuffered. OSError for a link, a file of two names, and anything but a regular file."""
    file = open(path, mode, buffering=0, opener=_open)  # noqa: SIM115  (the caller closes it)
    if _is_own(os.fstat(file.fileno())):
        return file
    file.close()
    raise _not_ours(path)


def is_own(path: Path) -> bool:
    """Whether `path` can be a file of localrun: a regular file with one name."""
    try:
        return _is_own(os.lstat(path))
    except OSError:
        return False


def replace_own(path: Path, data: bytes) -> None:
    """Replace whatever is at `path` by a file with this content: completely or, with OSError, not at all."""
    fresh = path.with_name(f".{uuid.uuid4().hex}.localrun")
    try:
        with open_own(fresh, "xb") as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
        replace_file(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _open(path: str, flags: int) -> int:
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise _not_ours(path)
    try:
        return os.open(path, flags | _NO_LINKS, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a pipe without a reader
            raise _not_ours(path) from None
        raise


def _is_own(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _not_ours(path: Path | str) -> OSError:
    return OSError(errno.ELOOP, "a link or something else is in the place of localrun's own file; remove it", str(path))
