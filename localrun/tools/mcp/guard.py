"""Ends the servers of a process that is killed: a process of its own, which waits for the end of that one."""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import BinaryIO

from localrun.tools.mcp.limits import FINISH_SECONDS, TERMINATE_SECONDS

_MOST_FILES = 256  # more than are open where a process begins


class ServerGuard:
    """Told of each server that starts and ends, through a pipe. Without `fork`, as on Windows, it does nothing."""

    def __init__(self) -> None:
        """Start it, before there are threads. It keeps nothing open but its end of the pipe."""
        self._pipe = -1
        if sys.platform == "win32":
            return
        heard, self._pipe = os.pipe()
        if os.fork() == 0:
            try:
                _guard(heard)
            finally:
                os._exit(0)
        os.close(heard)

    def watch(self, group: int) -> None:
        """A server runs, with all that it starts, as this group of processes."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Forget a process that has ended: its number may become that of another."""
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        if self._pipe >= 0:
            with suppress(OSError):  # it was killed
                os.write(self._pipe, line.encode())


def _guard(heard: int) -> None:
    """Listen until the pipe ends, then end the servers that still run, as the process would have done."""
    if sys.platform == "win32":
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(heard, 0)
    os.closerange(1, _MOST_FILES)  # the pipes of the process end with it
    with open(0, "rb") as lines:
        groups = running_groups(lines)
    for seconds, how in ((FINISH_SECONDS, signal.SIGTERM), (TERMINATE_SECONDS, signal.SIGKILL)):
        if groups:
            time.sleep(seconds)  # their input has ended already
        for group in groups:
            with suppress(OSError):  # it has ended
                os.killpg(group, how)


def running_groups(lines: BinaryIO) -> set[int]:
    """The groups that were told of, less those that have ended."""
    groups: set[int] = set()
    for line in lines:
        change = groups.add if line[:1] == b"+" else groups.discard
        change(int(line[1:]))
    return groups
