"""Download of repository files into the Hugging Face cache: resumed, verified, and safe for two processes at once."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import HubError
from localrun.base.units import gib
from localrun.hub.disk.hf_cache import blob_path, find_stored, link, remember_commit, repo_folder, snapshot_path
from localrun.hub.downloads.disk_space import disk_errors, require_space
from localrun.hub.downloads.journal import CHUNK_BYTES
from localrun.hub.downloads.large_files import PLAIN_HTTP_BYTES, fetch_large
from localrun.hub.downloads.partial import LostError, Partial, open_partial, remove_leftovers
from localrun.hub.downloads.progress import (
    Control,
    DownloadFinished,
    DownloadNotice,
    DownloadProgress,
    DownloadStarted,
    Emit,
    Meter,
)
from localrun.hub.downloads.transfer import Transfer
from localrun.hub.downloads.unsynced import recover, sync_linked
from localrun.hub.downloads.verifier import Verifier
from localrun.hub.network.http import Http
from localrun.hub.remote.repo import RemoteFile, RemoteRepo

POLL_SECONDS = 0.5  # how often we look whether the process we wait for is done
EVENT_SECONDS = 0.1
LIFE_SECONDS = 5.0


def download(
    http: Http,
    repo: RemoteRepo,
    files: Sequence[RemoteFile],
    emit: Emit = lambda event: None,
    control: Control | None = None,
) -> list[Path]:
    """Download `files` into the cache and return their paths, in order.

    Files already in the cache are not fetched again, and partial ones are resumed. Raises HubError for every failure
    and CancelledError after `control.cancel()`; what has arrived stays.
    """
    cache = http.access.cache
    job = _Job(http, repo, sum(file.size for file in files), emit, control or Control())
    with disk_errors(cache):
        require_space(cache, repo, files)
        changed = _changed_files(cache, repo, files)
        paths = [job.bring(file) for file in files]
        remember_commit(cache, repo)
    for file in changed:
        emit(DownloadNotice(file, f"{file} has changed on the hub since an earlier download"))
    return paths


class _Job:
    """One call of `download`: progress of all its files together."""

    def __init__(self, http: Http, repo: RemoteRepo, total: int, emit: Emit, control: Control) -> None:
        self.http = http
        self.repo = repo
        self.total = total
        self.emit = emit
        self.control = control
        self.meter = Meter()
        self.done_before = 0  # bytes of the files before this one

    def bring(self, file: RemoteFile) -> Path:
        """Get one file: find it, wait for another process, or fetch it."""
        cache, fetched_before = self.http.access.cache, self.meter.fetched
        blob = blob_path(cache, self.repo.name, file)
        waiting = False
        if lost := recover(blob):
            text = f"{gib(lost)} of {file.path} had not reached the disk: fetching that again"
            self.emit(DownloadNotice(file.path, text))
        if file.size > PLAIN_HTTP_BYTES and find_stored(cache, self.repo, file) is None:
            self.emit(DownloadStarted(file.path, file.size, 0))
            fetch_large(self.http, self.repo, file, self.control, self.meter)
        while find_stored(cache, self.repo, file) is None:
            self.control.check()
            partial = open_partial(blob, self.repo.name, file)
            if partial is None:
                if not waiting:
                    self.emit(DownloadNotice(file.path, f"another process is downloading {file.path}: waiting for it"))
                waiting = True
                time.sleep(POLL_SECONDS)
                continue
            try:
                self.fetch(file, partial)
            except LostError:
                continue
            finally:
                partial.close()
        path = link(cache, self.repo, file)
        remove_leftovers(blob)
        sync_linked(blob, path)
        self.done_before += file.size
        self.emit(DownloadFinished(file.path, path, file.size, self.meter.fetched - fetched_before))
        return path

    def fetch(self, file: RemoteFile, partial: Partial) -> None:
        """Complete a partial file, verify it, and turn it into a blob."""
        partial.reserve()
        self.emit(DownloadStarted(file.path, file.size, _bytes_there(partial)))
        if self.complete(file, partial) != file.etag:
            self.repair(file, partial)
        partial.check_claim()
        partial.finish(blob_path(self.http.access.cache, self.repo.name, file))

    def repair(self, file: RemoteFile, partial: Partial) -> None:
        """Repair a complete file whose hash is wrong.

        The disk is suspected first, then the network, last the server.
        """
        self.emit(DownloadNotice(file.path, f"the checksum of {file.path} is wrong: looking for the damage"))
        damaged = partial.damaged()
        for chunk in damaged:
            partial.forget(chunk)
        if damaged and self.complete(file, partial) == file.etag:
            self.emit(DownloadNotice(file.path, f"repaired {len(damaged)} damaged chunks of {file.path}"))
            return
        before = dict(partial.chunks)
        for chunk in before:
            partial.forget(chunk)
        etag = self.complete(file, partial)
        if etag != file.etag:
            partial.remove()
            self.tell_progress(file, 0)
            raise HubError(
                f"{file.path} does not have the checksum that the hub announces, fetched twice",
                "nothing was kept; try again later or without HF_ENDPOINT, and tell the owner of the repository",
            )
        differing = sum(before[chunk] != checksum for chunk, checksum in partial.chunks.items())
        self.emit(DownloadNotice(file.path, f"{differing} chunks of {file.path} had arrived damaged: fetched again"))

    def complete(self, file: RemoteFile, partial: Partial) -> str:
        """Fetch the missing chunks; returns the hash of the whole file, computed meanwhile."""
        transfer = Transfer(self.http, self.repo, file, partial, self.control, self.meter)
        check = Verifier(file, partial, transfer.arrived)
        next_event = next_life = 0.0
        told = ""
        transfer.start()
        try:
            while transfer.is_running or not check.is_done:
                if transfer.failure is not None:
                    raise transfer.failure
                if not check.advance():
                    with transfer.progressed:
                        transfer.progressed.wait_for(lambda: transfer.arrived or not transfer.is_running, EVENT_SECONDS)
                now = time.monotonic()
                if now >= next_event:
                    next_event = now + EVENT_SECONDS
                    self.report(file, partial)
                    told = self.report_retries(file, transfer, told)
                if now >= next_life:
                    next_life = now + LIFE_SECONDS
                    partial.sign_of_life()
        finally:
            transfer.stop()
            with suppress(LostError):
                check.note_arrived()
            check.close()
        if transfer.failure is not None:
            raise transfer.failure
        self.report(file, partial)
        self.report_retries(file, transfer, told)
        return check.hexdigest()

    def report_retries(self, file: RemoteFile, transfer: Transfer, told: str) -> str:
        """Report why something is tried again, without repeating a reason; returns the last one."""
        while transfer.retries:
            reason = transfer.retries.popleft()
            if reason != told:
                told = reason
                self.emit(DownloadNotice(file.path, f"{reason}: trying again"))
        return told

    def report(self, file: RemoteFile, partial: Partial) -> None:
        self.tell_progress(file, _bytes_there(partial))

    def tell_progress(self, file: RemoteFile, done: int) -> None:
        total_done, meter = self.done_before + done, self.meter
        rate, silence = meter.rate(), meter.silent_seconds if done < file.size else 0.0
        self.emit(DownloadProgress(file.path, done, file.size, total_done, self.total, rate, silence))


def _bytes_there(partial: Partial) -> int:
    return min(partial.size, len(partial.chunks) * CHUNK_BYTES)


def _changed_files(cache: Path, repo: RemoteRepo, files: Sequence[RemoteFile]) -> list[str]:
    """Files that an earlier download stored under the same name with other content."""
    snapshots = repo_folder(cache, repo.name) / "snapshots"
    changed = []
    for file in files:
        if snapshot_path(cache, repo, file).exists():
            continue
        earlier = [path for path in snapshots.glob("*") if (path / file.path).is_symlink()]
        if any((path / file.path).resolve().name != file.etag for path in earlier):
            changed.append(file.path)
    return changed
