"""The downloads of the app: one queue that outlives its screen, and what an earlier run has left unfinished."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from textual.app import App
from textual.signal import Signal

from localrun.base.errors import LocalrunError
from localrun.base.request import KVCodecName
from localrun.base.sanitize import clean
from localrun.base.settings import read_settings, write_setting
from localrun.hub.access import read_access
from localrun.hub.api import RemoteFile, RemoteRepo, read_repo
from localrun.hub.http import Http
from localrun.hub.library import unfinished
from localrun.hub.names import parse_file_name
from localrun.hub.partial import is_alive, remove_partial
from localrun.hub.preview import Preview
from localrun.hub.queue import DownloadQueue, Job
from localrun.hub.queue import State as JobState
from localrun.hub.stored import StoredModel, stored_at
from localrun.hub.variants import Variant, variants_of

from .background import run_in_background, tell
from .choice import Choice

State = Literal[JobState, "unfinished", "starting"]
_ENDING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Download:
    """One line of the downloads. Bytes and bytes a second; `stored` is the model once it is there."""

    key: str
    name: str
    repo: str
    precision: str
    state: State
    done: int
    total: int
    rate: float = 0.0
    error: LocalrunError | None = None
    note: str = ""
    stored: StoredModel | None = None
    ctx: int | None = None
    kv: KVCodecName = "auto"
    file: str = ""  # one of its files

    @property
    def active(self) -> bool:
        return self.state in ("queued", "running", "starting")

    @property
    def share(self) -> float:
        return self.done / self.total if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    @property
    def choice(self) -> Choice | None:
        """What to load once it is there."""
        return Choice(self.stored, self.stored.precision, self.ctx, self.kv) if self.stored else None


class Downloads:
    """All methods are for the UI's thread, and none of them waits. `changed` is published with this object."""

    def __init__(self, app: App[Any]) -> None:
        self.changed: Signal[Downloads] = Signal(app, "downloads")
        self._app = app
        self._queue: DownloadQueue | None = None
        self._downloads: dict[str, Download] = {}
        self._jobs: dict[int, str] = {}  # number of a job -> key of its download

    def all(self) -> list[Download]:
        return list(self._downloads.values())

    def get(self, key: str) -> Download | None:
        return self._downloads.get(key)

    def find(self, repo: str, variant: Variant) -> Download | None:
        """The download of a precision, if there is one."""
        return self._downloads.get(_key(repo, variant.files[0].path))

    def start(self, found: Preview, variant: Variant, precision: str, ctx: int | None, kv: KVCodecName) -> None:
        """Put a precision at the end of the queue; one that is there already goes on."""
        assert found.repo is not None
        known = self.find(found.repo.name, variant)
        if known is not None and known.active:
            return
        file = variant.files[0].path
        download = Download(
            key=_key(found.repo.name, file),
            name=found.wanted.name,
            repo=found.repo.name,
            precision=precision,
            state="queued",
            done=known.done if known else 0,
            total=variant.bytes,
            ctx=ctx,
            kv=kv,
            file=file,
        )
        self._enqueue(download, found.repo, variant.files)

    def pause(self, key: str) -> None:
        self._steer(key, DownloadQueue.pause)

    def cancel(self, key: str) -> None:
        """Stop; what has arrived stays until it is removed, or goes on."""
        self._steer(key, DownloadQueue.cancel)

    def resume(self, key: str) -> None:
        """Go on with what is paused, failed, cancelled, or was left by an earlier run."""
        download = self._downloads[key]
        if download.state != "unfinished":
            self._steer(key, DownloadQueue.resume)
            return
        self._put(replace(download, state="starting", error=None))

        def work(task: object) -> tuple[RemoteRepo, tuple[RemoteFile, ...]]:
            http = Http(read_access())
            try:
                repo = read_repo(http, download.repo)
            finally:
                http.close()
            files = (variant.files for variant in variants_of(repo))
            same = next((some for some in files if any(_key(repo.name, file.path) == key for file in some)), None)
            return repo, same or (repo.file(download.file),)

        def done(answer: tuple[RemoteRepo, tuple[RemoteFile, ...]]) -> None:
            repo, files = answer
            self._enqueue(replace(download, total=sum(file.size for file in files)), repo, files)

        def failed(error: LocalrunError) -> None:
            self._put(replace(download, error=error))

        run_in_background(self._app, work, done, failed)

    def remove(self, key: str, done: Callable[[int], Any]) -> None:
        """Take a stopped download off the list, and what arrived of it off the disk; `done` gets the bytes freed."""
        download = self._downloads[key]
        if download.active:
            return
        del self._downloads[key]
        self._tell()
        if download.state == "done":
            return

        run_in_background(self._app, lambda task: _remove_parts(download), done)

    def look_for_unfinished(self) -> None:
        """List what an earlier run has begun, to be resumed; nothing is fetched unasked."""

        def work(task: object) -> list[Download]:
            found: dict[str, Download] = {}
            for journal, head, there in unfinished():
                if is_alive(journal, head):
                    continue
                key, precision = _key(head.repo, head.file), parse_file_name(head.file).precision
                new = Download(key, head.repo, head.repo, precision, "unfinished", 0, 0, file=head.file)
                one = found.get(key, new)
                found[key] = replace(one, done=one.done + there, total=one.total + head.size)
            return list(found.values())

        def done(found: list[Download]) -> None:
            for download in found:
                self._downloads.setdefault(download.key, download)
            self._tell()

        run_in_background(self._app, work, done)

    def close(self) -> None:
        """Stop everything; what has arrived is offered again next time. Blocks for a few seconds at most."""
        if self._queue is not None:
            self._queue.close()

    def _enqueue(self, download: Download, repo: RemoteRepo, files: tuple[RemoteFile, ...]) -> None:
        if self._queue is None:
            self._queue = DownloadQueue(read_access(), lambda job: tell(self._app, self._follow, job))
        job = self._queue.add(repo, files)
        self._jobs[job.number] = download.key
        self._put(replace(download, state=job.state, error=None))

    def _steer(self, key: str, action: Callable[[DownloadQueue, int], None]) -> None:
        numbers = [number for number, known in self._jobs.items() if known == key]
        if self._queue is not None and numbers:
            action(self._queue, numbers[-1])

    def _follow(self, job: Job) -> None:
        """A job has changed."""
        key = self._jobs.get(job.number)
        download = self._downloads.get(key) if key else None
        if download is None:
            return
        note = clean(job.note, keep_newlines=False)
        moved = replace(download, state=job.state, done=job.done, rate=job.bytes_per_second, error=job.error, note=note)
        self._put(moved)
        if job.state == "done" and download.state != "done":
            run_in_background(self._app, lambda task: _arrived(moved, job.paths), self._finish)
        elif job.state == "failed" and download.state != "failed" and job.error is not None:
            self._app.notify(job.error.hint, title=job.error.message, severity="error", markup=False)

    def _finish(self, answer: tuple[Download, bool]) -> None:
        download, is_default = answer
        self._put(download)
        also = " It is the default model now." if is_default else ""
        title = clean(f"{download.name} {download.precision} is here", keep_newlines=False)
        self._app.notify(f"Checked, and ready to chat with.{also}", title=title, markup=False)

    def _put(self, download: Download) -> None:
        self._downloads[download.key] = download
        self._tell()

    def _tell(self) -> None:
        self.changed.publish(self)


def _arrived(download: Download, paths: tuple[Path, ...]) -> tuple[Download, bool]:
    """The model on disk; the first one that is downloaded becomes the default."""
    path = paths[0] if paths[0].suffix == ".gguf" else paths[0].parent
    format = "gguf" if path.suffix == ".gguf" else "safetensors"
    stored = next(model for model in stored_at(path, "hub", download.repo) if model.format == format)
    is_default = read_settings().model is None
    if is_default:
        write_setting("model", download.name)
    return replace(download, stored=replace(stored, precision=download.precision or stored.precision)), is_default


def _remove_parts(download: Download) -> int:
    """Bytes freed. A download that was cancelled a moment ago needs another one to end."""
    freed, until = 0, time.monotonic() + _ENDING_SECONDS
    while True:
        parts = [part for part in unfinished() if part[1].repo == download.repo]
        mine = [part for part in parts if _key(part[1].repo, part[1].file) == download.key]
        ended = [part for part in mine if not is_alive(part[0], part[1])]
        for journal, _, there in ended:
            remove_partial(journal)
            freed += there
        if len(ended) == len(mine) or time.monotonic() > until:
            return freed
        time.sleep(0.1)


def _key(repo: str, file: str) -> str:
    """One for all files of a precision."""
    path = PurePosixPath(file)
    if path.suffix != ".gguf":
        return f"{repo} safetensors"
    parts = parse_file_name(path.name)
    return f"{repo} {path.parent / parts.model} {parts.precision}"
