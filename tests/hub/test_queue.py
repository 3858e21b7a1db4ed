import random
import threading
from collections.abc import Callable

import pytest
from localrun_testing.fake_hub import FakeHub
from localrun_testing.waiting import until

from localrun.base.errors import HubError
from localrun.hub.downloads.progress import Meter
from localrun.hub.downloads.queue import DownloadQueue, DownloadState, Job
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.repo import RemoteRepo

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
FILES = {name: random.Random(name).randbytes(6 << 20) for name in ("a.bin", "b.bin", "c.bin")}


def until_is(queue: DownloadQueue, number: int, state: DownloadState) -> Job:
    def found() -> Job | None:
        job = queue.jobs()[number - 1]
        return job if job.state == state else None

    return until(found, queue.jobs)


@pytest.fixture
def setting(serve: Serve, access_to: AccessTo) -> tuple[FakeHub, Access, RemoteRepo]:
    hub = serve({"a/b": FILES})
    access = access_to(hub)
    return hub, access, read_repo(Http(access), "a/b")


def test_one_after_the_other(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    _, access, repo = setting
    seen: list[Job] = []
    queue = DownloadQueue(access, seen.append)
    for file in repo.files:
        queue.add(repo, [file])
    for number in (1, 2, 3):
        job = until_is(queue, number, "done")
        assert job.paths[0].read_bytes() == FILES[job.files[0]]
        assert job.done == job.total == 6 << 20
    running = [job.number for job in seen if job.state == "running"]
    assert running == sorted(running)
    queue.close()


def test_changes_are_seen_in_their_order(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    """Though another thread changes the job while somebody still looks at the state before."""
    hub, access, repo = setting
    hub.bytes_per_second = 1e6
    seen: list[DownloadState] = []

    def watch(job: Job) -> None:
        if job.state == "running" and job.done and not pausing.ident:
            pausing.start()
            pausing.join(0.2)
        seen.append(job.state)

    queue = DownloadQueue(access, watch)
    pausing = threading.Thread(target=queue.pause, args=(1,))
    queue.add(repo, [repo.file("a.bin")])
    until_is(queue, 1, "paused")
    pausing.join()
    assert seen[-1] == "paused"
    queue.close()


def test_pause_lets_others_go_first_and_resume_goes_on(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    hub, access, repo = setting
    hub.bytes_per_second = 1e6
    queue = DownloadQueue(access)
    for name in ("a.bin", "b.bin"):
        queue.add(repo, [repo.file(name)])
    until(lambda: queue.jobs()[0].done >= 1 << 19)
    queue.pause(1)
    hub.bytes_per_second = None
    until_is(queue, 2, "done")
    assert queue.jobs()[0].state == "paused"
    arrived = queue.jobs()[0].done
    before = hub.sent("a.bin")
    queue.resume(1)
    assert until_is(queue, 1, "done").paths[0].read_bytes() == FILES["a.bin"]
    assert hub.sent("a.bin") - before <= (6 << 20) - arrived + (1 << 20)
    queue.close()


def test_cancel_and_close(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    hub, access, repo = setting
    hub.bytes_per_second = 2e5
    queue = DownloadQueue(access)
    for file in repo.files:
        queue.add(repo, [file])
    queue.cancel(2)
    until_is(queue, 1, "running")
    queue.cancel(1)
    until_is(queue, 3, "running")
    assert [job.state for job in queue.jobs()] == ["cancelled", "cancelled", "running"]
    queue.close()
    assert queue.jobs()[2].state == "cancelled"


def test_a_failed_download_is_reported_and_can_be_retried(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    hub, access, repo = setting
    hub.break_file("a.bin", "html")
    queue = DownloadQueue(access)
    queue.add(repo, [repo.file("a.bin")])
    queue.add(repo, [repo.file("b.bin")])
    failed = until_is(queue, 1, "failed")
    assert isinstance(failed.error, HubError)
    until_is(queue, 2, "done")
    hub.trouble.clear()
    queue.resume(1)
    assert until_is(queue, 1, "done").error is None
    queue.close()


def test_what_is_known_to_be_there_counts_before_the_hub_is_asked(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    _, access, repo = setting
    seen: list[Job] = []
    queue = DownloadQueue(access, seen.append)
    queue.add(repo, [repo.file("a.bin")], done=1 << 20)
    until_is(queue, 1, "done")
    queue.close()
    assert seen[0].done == 1 << 20


def test_a_hub_that_falls_silent_is_told(
    setting: tuple[FakeHub, Access, RemoteRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, access, repo = setting
    monkeypatch.setattr(Meter, "WINDOW", 0.2)
    hub.bytes_per_second, hub.fast_bytes = 1.0, 1 << 20
    queue = DownloadQueue(access)
    queue.add(repo, [repo.file("a.bin")])

    def silent() -> Job | None:
        return job if (job := queue.job(1)).silent_seconds and job.done else None

    assert until(silent, queue.jobs).silent_seconds > 0.2
    hub.bytes_per_second = None
    assert until_is(queue, 1, "done").silent_seconds == 0.0
    queue.close()


def test_of_a_file_that_is_never_right_nothing_counts_as_there(setting: tuple[FakeHub, Access, RemoteRepo]) -> None:
    hub, access, repo = setting
    hub.break_file("a.bin", "flip", at=5)
    queue = DownloadQueue(access)
    queue.add(repo, [repo.file("a.bin")])
    job = until_is(queue, 1, "failed")
    assert "nothing was kept" in str(job.error and job.error.hint)
    assert job.done == 0
    queue.close()
