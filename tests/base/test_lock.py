"""A file that is locked keeps everybody else waiting: threads, processes, and nobody after a death."""

import errno
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from localrun.base import lock
from localrun.base.lock import locked

HOLD = """
import sys, time
from pathlib import Path
from localrun.base.lock import locked
with locked(Path(sys.argv[1])):
    print("has it", flush=True)
    time.sleep(60)
"""


def test_threads_and_processes_wait_for_each_other_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", list[str]()
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()

    def work() -> None:
        with locked(path):
            order.append("begins")
            time.sleep(0.02)
            order.append("ends")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    assert order == []
    other.send_signal(signal.SIGTERM)
    other.communicate()
    for thread in threads:
        thread.join(60)
    assert order == ["begins", "ends"] * 4
    assert path.stat().st_mode & 0o077 == 0


def test_an_error_inside_lets_go(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock"):
        raise ValueError("inside")
    with locked(tmp_path / "lock"):
        pass


class Elsewhere:
    """The module of another system: its lock is busy for some calls, or fails."""

    LK_NBLCK, LOCK_EX = "try", "wait"

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)

    def locking(self, fd: int, what: str, n: int) -> None:
        assert (what, n) == ("try", 1)
        self.flock(fd, "wait")

    def flock(self, fd: int, what: str) -> None:
        assert what == "wait"
        if self.errors:
            raise OSError(self.errors.pop(0), "no lock")


def test_windows_is_asked_until_the_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Elsewhere(errno.EACCES, errno.EACCES)
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", windows)
    with locked(tmp_path / "lock"):
        assert windows.errors == []


def test_a_file_system_without_locks_is_no_error_and_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", Elsewhere(errno.ENOLCK, errno.EIO))
    with locked(tmp_path / "lock"):
        pass
    with pytest.raises(OSError, match="no lock"), locked(tmp_path / "lock"):
        pass
