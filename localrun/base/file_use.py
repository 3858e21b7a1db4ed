"""Files that a process uses although it need not have them open, so that whoever wants to delete one knows by whom.

A shared lock stands for the use. The system lets go of it with the process, however that ends; Windows has none such.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from localrun.base.sanitize import clean

fcntl: Any = None
with suppress(ImportError):
    import fcntl

_LOCKS = Path("/proc/locks")  # of Linux: who holds which
_COMPUTES = "localrun.client.worker.main"  # in the command of a process that computes for its parent
_TRIES, _TRY_SECONDS = 20, 0.005
_WORDS = 2  # of a command: more may be a prompt


class FileUse:
    """The use of a file or folder by this process until `end`; none where the system has no such locks."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        with suppress(OSError):
            self._fd = _open(path)
            _share(self._fd)

    def end(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.end()


def users_of(path: Path) -> tuple[str, ...]:
    """The processes that use a file or folder, in words; `another localrun` where the system does not tell which."""
    try:
        fd = _open(path)
    except OSError:
        return ()
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return tuple(sorted(set(_names(os.fstat(fd))))) or ("another localrun",)
    except OSError:
        return ()
    finally:
        os.close(fd)
    return ()


def _share(fd: int) -> None:
    """Lock a file together with others; whoever only asks has it for a moment, and another program maybe for ever."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_TRY_SECONDS)


def _open(path: Path) -> int:
    if fcntl is None:
        raise OSError("this system has no locks that a process loses as it ends")
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))


def _names(status: os.stat_result) -> Iterator[str]:
    if sys.platform != "linux":
        return
    import psutil  # here: the first frame of the app does without it

    where = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            _, kind, *_, pid, place, _, _ = line.split()
            if (kind, place) == ("FLOCK", where):
                with suppress(psutil.Error, ValueError):
                    yield _name(psutil.Process(int(pid)))


def _name(process: Any) -> str:
    """The command of a process and its number; those of its parent where it computes for that."""
    command = process.cmdline()
    if _COMPUTES in command and (parent := process.parent()) is not None:
        process, command = parent, parent.cmdline()
    while len(command) > 1 and (command[0].startswith("-") or os.path.basename(command[0]).startswith("python")):
        if command[1] == "-c":  # a program in one line
            command = command[:1]
            break
        del command[0]
    words = [os.path.basename(one) if i == 0 else one for i, one in enumerate(command[:_WORDS])]
    return clean(f"{' '.join(words)} (process {process.pid})", keep_newlines=False)
