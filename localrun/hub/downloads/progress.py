"""Events of a download, and the `Control` that stops it."""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError


@dataclass(frozen=True, slots=True)
class DownloadStarted:
    """A file begins; `have` bytes of it are on disk from an earlier attempt."""

    file: str
    size: int
    have: int


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """Bytes so far, of this file and of all; the rate covers the last seconds, in bytes per second.

    `silent_seconds`: since the last byte, once the rate is 0.
    """

    file: str
    done: int
    size: int
    total_done: int
    total: int
    bytes_per_second: float
    silent_seconds: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end; None while nothing arrives."""
        return (self.total - self.total_done) / self.bytes_per_second if self.bytes_per_second > 0 else None


@dataclass(frozen=True, slots=True)
class DownloadNotice:
    """A note for the user: waiting for another process, a retry, or a repair."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class DownloadFinished:
    """A file is complete and verified; `fetched` bytes came over the network in this call."""

    file: str
    path: Path
    size: int
    fetched: int


DownloadEvent = DownloadStarted | DownloadProgress | DownloadNotice | DownloadFinished
Emit = Callable[[DownloadEvent], None]


class CancelledError(HubError):
    """The download was stopped on request; what has arrived stays."""

    kind = "cancelled"


class Control:
    """Stop a download from any thread. What has arrived stays, so a pause is a stop too."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def pause(self, seconds: float) -> None:
        """Wait; CancelledError as soon as the download is cancelled."""
        self._cancelled.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise CancelledError once cancelled."""
        if self._cancelled.is_set():
            raise CancelledError("the download was stopped", "start it again to resume")


class Meter:
    """Count bytes from many threads; the rate covers the last few seconds."""

    WINDOW = 5.0

    def __init__(self) -> None:
        self.fetched = 0
        self._lock = threading.Lock()
        self._last = time.monotonic()  # when bytes came, or the start
        self._samples: deque[tuple[float, int]] = deque([(self._last, 0)])

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self.fetched += n_bytes
            self._last = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last byte; 0 while the rate is not."""
        silence = time.monotonic() - self._last
        return silence if silence > self.WINDOW else 0.0

    def rate(self) -> float:
        """Bytes per second."""
        now = time.monotonic()
        self._samples.append((now, self.fetched))
        while len(self._samples) > 2 and self._samples[1][0] < now - self.WINDOW:
            self._samples.popleft()
        then, before = self._samples[0]
        return (self.fetched - before) / (now - then) if now > then else 0.0
