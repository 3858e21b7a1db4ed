"""Queue of downloads, one after the other in a thread of its own: added, paused, resumed, cancelled and watched."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, LocalrunError
from localrun.hub.compatibility import require_runnable
from localrun.hub.downloads import transfer
from localrun.hub.downloads.download import download
from localrun.hub.downloads.progress import CancelledError, Control, DownloadEvent, DownloadNotice, DownloadProgress
from localrun.hub.network.access import Access
from localrun.hub.network.http import LONGEST_WAIT, Http, NetworkError
from localrun.hub.remote.repo import RemoteFile, RemoteRepo

DownloadState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Job:
    """Snapshot of one download. `done` and `total` are bytes of all its files; `error` is why it failed.

    `note` is for the user while it runs: waiting for another process, or a retry. `silent_seconds`: since the last
    byte, where none comes.
    """

    number: int
    repo: str
    files: tuple[str, ...]
    state: DownloadState
    done: int
    total: int
    bytes_per_second: float = 0.0
    silent_seconds: float = 0.0
    error: LocalrunError | None = None
    paths: tuple[Path, ...] = ()
    note: str = ""


Watch = Callable[[Job], None]


class DownloadQueue:
    """A queue of downloads.

    `watch` receives a job whenever it changes, in the thread that changes it and under the lock: a watcher sees one
    state after the other, and must not wait for another thread.
    """

    def __init__(self, access: Access, watch: Watch = lambda job: None) -> None:
        self._access = access
        self._watch = watch
        self._changed = threading.Condition()
        self._jobs: dict[int, Job] = {}
        self._work: dict[int, tuple[RemoteRepo, tuple[RemoteFile, ...], Control]] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="localrun-queue", daemon=True)
        self._thread.start()

    def add(self, repo: RemoteRepo, files: Sequence[RemoteFile], done: int = 0) -> Job:
        """Append a download to the queue; `done` bytes of it are known to be there."""
        with self._changed:
            number = len(self._jobs) + 1
            total = sum(file.size for file in files)
            job = Job(number, repo.name, tuple(file.path for file in files), "queued", done, total)
            self._jobs[number] = job
            self._work[number] = repo, tuple(files), Control()
            self._changed.notify_all()
            self._watch(job)
        return job

    def jobs(self) -> list[Job]:
        """All jobs of this queue, finished ones included, in order."""
        with self._changed:
            return list(self._jobs.values())

    def job(self, number: int) -> Job:
        """One job in its current state."""
        with self._changed:
            return self._jobs[number]

    def pause(self, number: int) -> None:
        """Pause a download and continue with the next ones; what has arrived stays."""
        self._stop(number, "paused", "queued", "running")

    def resume(self, number: int) -> None:
        """Queue a paused, failed or cancelled download again, from where it stopped."""
        repo, files, _ = self._work[number]
        self._work[number] = repo, files, Control()
        self._update(number, {"state": "queued", "error": None}, "paused", "failed", "cancelled")

    def cancel(self, number: int) -> None:
        """Stop a download; what has arrived stays on disk until `rm` or another pull."""
        self._stop(number, "cancelled", "queued", "running", "paused")

    def close(self) -> None:
        """Cancel running downloads and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for _, _, control in self._work.values():
            control.cancel()
        self._thread.join()

    def _stop(self, number: int, state: DownloadState, *from_states: DownloadState) -> None:
        control = self._work[number][2]
        if self._update(number, {"state": state, "bytes_per_second": 0.0}, *from_states):
            control.cancel()

    def _run(self) -> None:
        http = Http(self._access)
        while (number := self._next()) is not None:
            self._download(http, number)
        http.close()

    def _download(self, http: Http, number: int) -> None:
        repo, files, control = self._work[number]
        if not self._update(number, {"state": "running", "note": ""}, "queued"):
            return

        def follow(event: DownloadEvent) -> None:
            if isinstance(event, DownloadProgress):
                rate = event.bytes_per_second
                moved = {"note": ""} if rate > 0 and event.total_done > self._jobs[number].done else {}
                now = {"done": event.total_done, "bytes_per_second": rate, "silent_seconds": event.silent_seconds}
                self._update(number, {**now, **moved}, "running")
            elif isinstance(event, DownloadNotice):
                self._update(number, {"note": event.text}, "running")

        try:
            self._look_at(http, number)
            paths = tuple(download(http, repo, files, follow, control))
        except CancelledError:
            self._update(number, {"state": "cancelled", "bytes_per_second": 0.0}, "running")
        except Exception as error:
            known = error if isinstance(error, LocalrunError) else HubError(f"{type(error).__name__}: {error}")
            self._update(number, {"state": "failed", "error": known, "bytes_per_second": 0.0}, "running")
        else:
            done = sum(file.size for file in files)
            still = {"bytes_per_second": 0.0, "note": ""}
            self._update(number, {"state": "done", "done": done, "paths": paths, **still})

    def _look_at(self, http: Http, number: int) -> None:
        """Refuse a model that cannot be run here; wait for the network as a download does."""
        repo, files, control = self._work[number]
        for seconds in (*transfer.RETRY_SECONDS, None):
            try:
                require_runnable(http, repo, files)
                return
            except NetworkError as error:
                if seconds is None or error.wait_seconds > LONGEST_WAIT:
                    raise
                self._update(number, {"note": f"{error.message}: trying again"}, "running")
                control.pause(max(seconds, error.wait_seconds))

    def _next(self) -> int | None:
        """Wait for the first queued job; None once closed."""
        with self._changed:
            while not self._closed:
                for job in self._jobs.values():
                    if job.state == "queued":
                        return job.number
                self._changed.wait()
            return None

    def _update(self, number: int, changes: dict[str, Any], *from_states: DownloadState) -> bool:
        """Change a job that is in one of these states (none given: any) and notify; False in other states."""
        with self._changed:
            job = self._jobs[number]
            if from_states and job.state not in from_states:
                return False
            self._jobs[number] = job = replace(job, **changes)
            self._changed.notify_all()
            self._watch(job)
        return True
