"""Events of a download for those who watch it; and a `Control` to stop it."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localrun.base.errors import HubError


@dataclass(frozen=True, slots=True)
class DownloadStarted:
    """A file's turn has come; `have` bytes of it are there from an earlier attempt."""

    file: str
    size: int
    have: int


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """Bytes so far, of this file and of all; the rate is of the last seconds, bytes a second."""

    file: str
    done: int
    size: int
    total_done: int
    total: int
    bytes_per_second: float

    @property
    def seconds_left(self) -> float | None:
        """None while nothing arrives."""
        return (self.total - self.total_done) / self.bytes_per_second if self.bytes_per_second > 0 else None


@dataclass(frozen=True, slots=True)
class DownloadNotice:
    """Something a user should know: we wait for another process, try again, or repaired what was damaged."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class DownloadFinished:
    """A file is there, checked; `fetched` bytes of it came over the network just now."""

    file: str
    path: Path
    size: int
    fetched: int


DownloadEvent = DownloadStarted | DownloadProgress | DownloadNotice | DownloadFinished
Emit = Callable[[DownloadEvent], None]


class CancelledError(HubError):
    """The download was stopped on request; what has arrived is kept."""

    kind = "cancelled"


class Control:
    """Stops a download from any thread. What has arrived stays, so this is how to pause one, too."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until it is cancelled: CancelledError then."""
        self._cancelled.wait(seconds)
        self.check()

    def check(self) -> None:
        """CancelledError once cancelled."""
        if self._cancelled.is_set():
            raise CancelledError("the download was stopped", "start it again to go on where it stopped")


class Meter:
    """Counts bytes from many threads; the rate is over the last few seconds."""

    WINDOW = 5.0

    def __init__(self) -> None:
        self.fetched = 0
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self.fetched += n_bytes

    def rate(self) -> float:
        """Bytes a second."""
        now = time.monotonic()
        self._samples.append((now, self.fetched))
        while len(self._samples) > 2 and self._samples[1][0] < now - self.WINDOW:
            self._samples.popleft()
        then, before = self._samples[0]
        return (self.fetched - before) / (now - then) if now > then else 0.0
