"""The downloads of the app: one queue that outlives its screen, and what an earlier run has left unfinished."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.signal import Signal

from localrun.base.errors import LocalrunError
from localrun.base.request import KVCodecName
from localrun.base.sanitize import clean
from localrun_tui.screens.downloads.download import Download, download_key
from localrun_tui.state.background import run_in_background, tell
from localrun_tui.widgets.toast import toast, toast_error

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice
    from localrun.hub.downloads.queue import DownloadQueue, Job
    from localrun.hub.remote.preview import RepoPreview
    from localrun.hub.remote.repo import RemoteFile, RemoteRepo
    from localrun.hub.remote.variants import Variant


class Downloads:
    """All methods are for the UI's thread, and none but `close` waits. `changed` is published with this object."""

    def __init__(
        self,
        app: App[Any],
        tell: Callable[[str, str], object] = lambda title, text: None,
        wanted: "Callable[[ModelChoice], Any]" = lambda choice: None,
    ) -> None:
        """`tell` takes a note for a user who looks elsewhere: a title, and a text. `wanted` gets what has arrived and
        was to be loaded then."""
        self._tell = tell
        self.changed: Signal[Downloads] = Signal(app, "downloads")
        self._wanted = wanted
        self._app = app
        self._queue: DownloadQueue | None = None
        self._downloads: dict[str, Download] = {}
        self._jobs: dict[int, str] = {}  # number of a job -> key of its download
        self._has_looked = False

    def all(self) -> list[Download]:
        return list(self._downloads.values())

    @property
    def n_arrived(self) -> int:
        """How many are done, and their models are there."""
        return sum(one.stored is not None for one in self._downloads.values())

    def get(self, key: str) -> Download | None:
        return self._downloads.get(key)

    def find(self, repo: str, variant: "Variant") -> Download | None:
        """The download of a precision, if there is one."""
        return self._downloads.get(download_key(repo, variant.files[0].path))

    def start(
        self,
        found: "RepoPreview",
        variant: "Variant",
        precision: str,
        ctx: int | None,
        kv: KVCodecName,
        then_load: bool = False,
    ) -> None:
        """Put a precision at the end of the queue; resume one that is in it already."""
        assert found.repo is not None
        known = self.find(found.repo.name, variant)
        if known is not None and known.active:
            return
        file = variant.files[0].path
        download = Download(
            key=download_key(found.repo.name, file),
            name=found.wanted.name,
            repo=found.repo.name,
            precision=precision,
            state="queued",
            done=known.done if known else 0,
            total=variant.bytes,
            ctx=ctx,
            kv=kv,
            file=file,
            then_load=then_load,
        )
        self._enqueue(download, found.repo, variant.files)

    def pause(self, key: str) -> None:
        """Pause it; those behind it continue."""
        if self._queue is not None and (number := self._job_of(key)):
            self._queue.pause(number)

    def resume(self, key: str) -> None:
        """Resume a paused, failed or left-over download."""
        if self._queue is not None and (number := self._job_of(key)):
            self._queue.resume(number)
            return
        download = self._downloads[key]
        self._put(replace(download, state="starting", error=None))

        def work(task: object) -> "tuple[RemoteRepo, tuple[RemoteFile, ...]]":
            from localrun_tui.screens.downloads.download_work import find_files

            return find_files(download)

        def done(answer: "tuple[RemoteRepo, tuple[RemoteFile, ...]]") -> None:
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
        self.changed.publish(self)
        if download.state == "done":
            return

        def work(task: object) -> int:
            from localrun_tui.screens.downloads.download_work import remove_parts
            from localrun_tui.screens.downloads.queue_file import forget

            forget(key)
            return remove_parts(download)

        run_in_background(self._app, work, done)

    def look_for_unfinished(self) -> None:
        """List what an earlier run has begun, once; nothing is fetched unasked."""
        if self._has_looked:
            return
        self._has_looked = True

        def work(task: object) -> list[Download]:
            from localrun_tui.screens.downloads.download_work import find_unfinished

            return find_unfinished()

        def done(found: list[Download]) -> None:
            self._downloads = {download.key: download for download in found} | self._downloads
            self.changed.publish(self)

        run_in_background(self._app, work, done)

    def close(self) -> None:
        """Stop everything; unfinished downloads are offered again next time. Blocks for a few seconds at most."""
        if self._queue is not None:
            self._queue.close()

    def _enqueue(self, download: Download, repo: "RemoteRepo", files: "tuple[RemoteFile, ...]") -> None:
        if self._queue is None:
            from localrun.hub.downloads.queue import DownloadQueue
            from localrun.hub.network.access import read_access

            self._queue = DownloadQueue(read_access(), lambda job: tell(self._app, self._follow, job.number))
        from localrun_tui.screens.downloads.queue_file import note_queued

        run_in_background(self._app, lambda task: note_queued(download), lambda _: None)
        job = self._queue.add(repo, files, download.done)
        self._jobs[job.number] = download.key
        self._put(replace(download, state=job.state, error=None))

    def _job_of(self, key: str) -> int:
        """The number of its last job; 0 for what was not queued in this run."""
        return max((number for number, known in self._jobs.items() if known == key), default=0)

    def _follow(self, number: int) -> None:
        """A job has changed. Messages of other threads may come late, so its present state is read."""
        download = self._downloads.get(self._jobs.get(number, ""))
        if download is None or self._queue is None or self._job_of(download.key) != number:
            return
        job = self._queue.job(number)
        note = clean(job.note, keep_newlines=False)
        moved = replace(
            download,
            state=job.state,
            done=job.done,
            rate=job.bytes_per_second,
            silent_seconds=job.silent_seconds,
            error=job.error,
            note=note,
        )
        self._put(moved)
        if job.state == "done" and download.state != "done":
            self._find_arrived(moved, job)
        elif job.state == "failed" and download.state != "failed" and job.error is not None:
            toast_error(self._app, job.error)

    def _find_arrived(self, download: Download, job: "Job") -> None:
        def work(task: object) -> tuple[Download, bool]:
            from localrun_tui.screens.downloads.download_work import find_arrived
            from localrun_tui.screens.downloads.queue_file import forget

            forget(download.key)
            return find_arrived(download, job.paths)

        def done(answer: tuple[Download, bool]) -> None:
            arrived, is_default = answer
            self._put(arrived)
            if arrived.then_load and arrived.choice is not None:
                self._wanted(arrived.choice)
            also = " It is the default model now." if is_default else ""
            title = f"{arrived.short_name} {arrived.precision} is here"
            self._tell("localrun", title)
            toast(self._app, title, f"Checked, and ready to chat with.{also}")

        run_in_background(self._app, work, done)

    def _put(self, download: Download) -> None:
        self._downloads[download.key] = download
        self.changed.publish(self)
