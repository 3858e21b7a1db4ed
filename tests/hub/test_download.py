"""Downloads that are cut, killed, lied to and squeezed, and end bit for bit right or with an error that says why."""

import errno
import json
import os
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import COMMIT, FakeHub, FakeRepo
from localrun_testing.waiting import until

from localrun.base.errors import HubError, NotFoundError
from localrun.hub.disk.hf_cache import blob_path
from localrun.hub.downloads import download as downloads
from localrun.hub.downloads import partial as partials
from localrun.hub.downloads import transfer, unsynced
from localrun.hub.downloads.download import download
from localrun.hub.downloads.journal import CHUNK_BYTES, read_chunks
from localrun.hub.downloads.partial import find_partials, open_partial
from localrun.hub.downloads.progress import (
    CancelledError,
    Control,
    DownloadEvent,
    DownloadFinished,
    DownloadNotice,
    DownloadProgress,
    DownloadStarted,
)
from localrun.hub.network import connection
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.repo import RemoteFile

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
BIG = random.Random(1).randbytes(12 * CHUNK_BYTES + 12345)
FILES = {"big.gguf": BIG, "config.json": b'{"a": 1}', "sub/empty.txt": b""}


@pytest.fixture(autouse=True)
def impatience(impatience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "RETRY_SECONDS", (0.01,) * 7)
    monkeypatch.setattr(downloads, "POLL_SECONDS", 0.05)


def pull(
    access: Access, *names: str, on: Callable[[DownloadEvent], None] | None = None, control: Control | None = None
) -> Any:
    """Download files (all without a name); gives their paths and the events."""
    http = Http(access)
    repo = read_repo(http, "a/b")
    events: list[DownloadEvent] = []

    def emit(event: DownloadEvent) -> None:
        events.append(event)
        if on:
            on(event)

    files = [repo.file(name) for name in names] or list(repo.files)
    return download(http, repo, files, emit, control), events


def everything_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}


def wait_for_disk(access: Access) -> None:
    """Instead of the two seconds that it takes in the background."""
    for blob in access.cache.rglob("blobs/*"):
        unsynced.write_out_now(blob)


def fetched(events: list[DownloadEvent]) -> int:
    return sum(event.fetched for event in events if isinstance(event, DownloadFinished))


def test_a_link_to_another_blob_of_that_size_is_not_the_file(serve: Serve, access_to: AccessTo) -> None:
    access = access_to(serve({"a/b": FILES}))
    (path,), _ = pull(access, "config.json")
    wrong = path.resolve().with_name("0" * 40)
    wrong.write_bytes(b'{"b": 2}')
    path.unlink()
    path.symlink_to(os.path.relpath(wrong, path.parent))
    assert [one.read_bytes() for one in pull(access, "config.json")[0]] == [FILES["config.json"]]


def test_files_arrive_in_the_layout_of_the_cache(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    access = access_to(hub)
    paths, events = pull(access)
    wait_for_disk(access)
    root = access.cache / "models--a--b"
    assert [path.relative_to(root / "snapshots" / COMMIT).as_posix() for path in paths] == list(FILES)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert everything_below(root) == {
        "refs/main",
        *(f"blobs/{hub.etag(content)}" for content in FILES.values()),
        *(f"snapshots/{COMMIT}/{name}" for name in FILES),
    }
    assert all(path.is_symlink() and not os.path.isabs(os.readlink(path)) for path in paths)
    assert (root / "refs/main").read_text() == COMMIT
    assert sum(hub.sent(name) for name in FILES) == sum(map(len, FILES.values())) == fetched(events)
    kinds = [type(event) for event in events if not isinstance(event, DownloadProgress)]
    assert kinds == [DownloadStarted, DownloadFinished] * 3
    last = [event for event in events if isinstance(event, DownloadProgress)][-1]
    assert last.total_done == last.total == sum(map(len, FILES.values()))

    before = len(hub.seen)
    again, events = pull(access)
    assert (again, fetched(events), len(hub.seen)) == (paths, 0, before + 1)


def test_parts_come_over_several_connections(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    pull(access_to(hub), "big.gguf")
    assert len({seen.range for seen in hub.seen if seen.server == "store"}) == 2


@pytest.mark.parametrize("how", ["cut", "reset"])
def test_a_cut_connection_goes_on_where_it_was(serve: Serve, access_to: AccessTo, how: str) -> None:
    hub = serve({"a/b": FILES})
    for at in (0, 1, 4096, 1_000_000, CHUNK_BYTES, 3_333_333):
        hub.break_file("big.gguf", how, times=1, at=at)
    paths, events = pull(access_to(hub), "big.gguf")
    assert paths[0].read_bytes() == BIG
    lost = fetched(events) - len(BIG)
    assert lost == 0
    assert hub.sent("big.gguf") - len(BIG) <= 6 * CHUNK_BYTES  # what lay in the buffers of a broken connection


def test_a_hub_that_is_down_for_a_moment(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 1.0)
    hub = serve({"a/b": FILES})
    for kind in ("busy", "expired", "silent"):
        hub.break_file("big.gguf", kind, times=1, at=1)
    paths, events = pull(access_to(hub), "big.gguf")
    assert paths[0].read_bytes() == BIG
    assert any(isinstance(event, DownloadNotice) and "trying again" in event.text for event in events)


def test_a_hub_that_stays_down_costs_nothing_that_was_there(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.break_file("big.gguf", "cut", times=1, at=5_000_000)
    hub.break_file("big.gguf", "cut", at=0)
    with pytest.raises(HubError, match="hung up") as caught:
        pull(access_to(hub), "big.gguf")
    assert "is kept" in caught.value.hint
    hub.trouble.clear()
    paths, events = pull(access_to(hub), "big.gguf")
    assert paths[0].read_bytes() == BIG
    assert len(BIG) - 5_000_000 <= fetched(events) <= len(BIG) - 5_000_000 + CHUNK_BYTES


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("whole", "whole file instead of the requested part"),
        ("wrong-range", "different part"),
        ("wrong-total", "different part"),
        ("html", "whole file|size differs"),
        ("gzip", "compressed"),
        ("bomb", "compressed"),
        ("long", "size differs"),
        ("short", "size differs"),
        ("redirect etag", "different file"),
        ("redirect commit", "different file"),
        ("redirect size", "different file"),
        ("redirect private", "private network"),
        ("other-bytes", "checksum"),
    ],
)
def test_lies_are_refused(serve: Serve, access_to: AccessTo, kind: str, says: str) -> None:
    hub = serve({"a/b": FILES})
    lie = kind.removeprefix("redirect ")
    if lie == kind:
        hub.break_file("big.gguf", kind)
    else:
        hub.break_file("redirect big.gguf", lie, to="http://169.254.169.254/" if lie == "private" else "")
    access = access_to(hub)
    with pytest.raises(HubError, match=says) as caught:
        pull(access, "big.gguf")
    assert caught.value.hint
    assert not [path for path in access.cache.rglob("*") if path.is_symlink() or len(path.name) == 64]


def test_an_etag_that_changes_midway(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})

    def change(event: DownloadEvent) -> None:
        hub.trouble["redirect big.gguf"] = []
        hub.break_file("redirect big.gguf", "etag")

    hub.break_file("big.gguf", "cut", times=2, at=CHUNK_BYTES)
    hub.bytes_per_second = 4e6
    with pytest.raises(HubError, match="different file"):
        pull(access_to(hub), "big.gguf", on=change)


@pytest.mark.parametrize("seed", range(20))
def test_a_bit_that_flips_on_the_way_is_found_and_repaired(serve: Serve, access_to: AccessTo, seed: int) -> None:
    content = BIG[: 2 * CHUNK_BYTES + 99]
    hub = serve({"a/b": {"x.gguf": content}})
    hub.break_file("x.gguf", "flip", times=1, at=random.Random(seed).randrange(len(content)))
    (path,), events = pull(access_to(hub))
    assert path.read_bytes() == content
    assert any(isinstance(event, DownloadNotice) and event.text.startswith("1 chunk") for event in events)


def test_a_bit_that_always_flips_is_refused_and_nothing_is_kept(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.break_file("big.gguf", "flip", at=7_777_777)
    hub.break_file("config.json", "flip", at=3)
    access = access_to(hub)
    for name in ("big.gguf", "config.json"):
        with pytest.raises(HubError, match="checksum"):
            pull(access, name)
    assert everything_below(access.cache) == set()


def interrupted(hub: FakeHub, access: Access, after: int) -> tuple[Path, Path]:
    """A download that stopped after about that many bytes; gives part and journal."""

    def stop(event: DownloadEvent) -> None:
        if isinstance(event, DownloadProgress) and event.done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(access, "big.gguf", on=stop)
    blobs = access.cache / "models--a--b/blobs"
    (part,), (journal,) = blobs.glob("*-part"), blobs.glob("*-journal")
    return part, journal


def abandon(journal: Path) -> None:
    """As if the process that owned it were dead."""
    journal.write_text(journal.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999'))


def test_damage_on_the_disk_costs_one_chunk(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.bytes_per_second = 4e6
    access = access_to(hub)
    part, journal = interrupted(hub, access, after=4 * CHUNK_BYTES)
    hub.bytes_per_second = None
    chunk = int(journal.read_text().split("\n")[2].split()[0])
    with part.open("r+b") as file:
        file.seek(chunk * CHUNK_BYTES + 1000)
        byte = file.read(1)[0]
        file.seek(chunk * CHUNK_BYTES + 1000)
        file.write(bytes([byte ^ 4]))
    ((_, _, there),) = find_partials(journal.parent)
    abandon(journal)
    (path,), events = pull(access, "big.gguf")
    assert path.read_bytes() == BIG
    assert fetched(events) == len(BIG) - there + CHUNK_BYTES
    assert any(isinstance(event, DownloadNotice) and event.text.startswith("repaired 1 ") for event in events)


def test_an_interrupted_download_goes_on(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.bytes_per_second = 4e6
    access = access_to(hub)
    _, journal = interrupted(hub, access, after=3 * CHUNK_BYTES)
    hub.bytes_per_second = None
    ((_, head, there),) = find_partials(journal.parent)
    assert (head.repo, head.file, head.size) == ("a/b", "big.gguf", len(BIG))
    assert 3 * CHUNK_BYTES <= there < len(BIG)
    journal.write_text(journal.read_text() + "7 12\nx\n99999 00000000\n3 0000")  # torn and senseless lines
    abandon(journal)
    (path,), events = pull(access, "big.gguf")
    assert path.read_bytes() == BIG
    assert fetched(events) == len(BIG) - there
    wait_for_disk(access)
    assert everything_below(journal.parent) == {hub.etag(BIG)}


def test_only_whole_lines_of_a_journal_count(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    lines = [
        "{}",
        "0 0000000a",
        "1 12",
        "x",
        "99 0000000b",
        "-1 0000000c",
        "2 0000000d",
        "2 -1",
        "4 0000000e",
        "3 0000000f",
    ]
    journal.write_text("\n".join(lines))  # the last one has no end: it may have been cut
    assert read_chunks(journal, 10) == {0: 10, 4: 14}
    assert read_chunks(tmp_path / "none", 10) == {}


def test_the_part_of_a_living_process_is_waited_for(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    access = access_to(hub)
    repo = read_repo(Http(access), "a/b")
    file = repo.file("big.gguf")
    blob = blob_path(access.cache, "a/b", file)
    mine = open_partial(blob, "a/b", file)
    assert mine is not None
    assert open_partial(blob, "a/b", file) is None
    seen: list[DownloadEvent] = []
    waiting = threading.Thread(target=lambda: pull(access, "big.gguf", on=seen.append), daemon=True)
    waiting.start()
    until(lambda: seen)
    assert isinstance(seen[0], DownloadNotice)
    assert "another process" in seen[0].text
    abandon(mine.journal)
    waiting.join(60)
    assert blob.read_bytes() == BIG
    with pytest.raises(partials.LostError):
        mine.record(0, 0)
    mine.close()


def test_a_former_owner_writes_nothing_more(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = serve({"a/b": FILES})
    hub.bytes_per_second = 3e6
    control = Control()
    taken = threading.Event()
    written: list[int] = []
    write = transfer.Transfer._write

    def watched(self: transfer.Transfer, part: Any, data: memoryview, position: Any) -> None:
        late = taken.is_set()
        write(self, part, data, position)
        if late:
            written.append(len(data))

    def take_over(event: DownloadEvent) -> None:
        if isinstance(event, DownloadProgress) and event.done > 0 and not taken.is_set():
            (journal,) = access.cache.rglob("*-journal")
            journal.rename(journal.with_name(journal.name.replace(".localrun-journal", "x.localrun-journal")))
            taken.set()
        if isinstance(event, DownloadNotice):
            control.cancel()

    monkeypatch.setattr(transfer.Transfer, "_write", watched)
    access = access_to(hub)
    with pytest.raises(CancelledError):
        pull(access, "big.gguf", on=take_over, control=control)
    assert taken.is_set()
    assert written == []


def test_a_process_without_a_sign_of_life_has_abandoned_its_part(
    serve: Serve, access_to: AccessTo, tmp_path: Path
) -> None:
    file = RemoteFile("x.gguf", 5 * CHUNK_BYTES, "a" * 64)
    blob = tmp_path / "blobs" / file.etag
    first = open_partial(blob, "a/b", file)
    assert first is not None
    first.reserve()
    first.record(3, 0xABCDEF)
    os.utime(first.journal, (0, 0))
    second = open_partial(blob, "a/b", file)
    assert second is not None
    assert (second.path, second.chunks) == (first.path, {3: 0xABCDEF})
    with pytest.raises(partials.LostError):
        first.check_claim()
    first.close()
    second.close()


def test_leftovers_of_a_late_crash_are_removed(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    access = access_to(hub)
    pull(access, "big.gguf")
    blobs = access.cache / "models--a--b/blobs"
    journal = blobs / f"{hub.etag(BIG)}.part.owner.localrun-journal"
    head = {"repo": "a/b", "file": "big.gguf", "size": len(BIG), "host": "gone", "pid": 1, "started": 0}
    journal.write_text(json.dumps(head) + "\n0 00000000\n")
    os.utime(journal, (0, 0))
    assert list(find_partials(blobs)) == []
    pull(access, "big.gguf")
    assert everything_below(blobs) == {hub.etag(BIG)}


def test_a_journal_without_its_part_counts_for_nothing(tmp_path: Path) -> None:
    file = RemoteFile("x.gguf", 5 * CHUNK_BYTES, "a" * 64)
    blob = tmp_path / "blobs" / file.etag
    first = open_partial(blob, "a/b", file)
    assert first is not None
    first.record(3, 1)
    first.close()
    abandon(first.journal)
    second = open_partial(blob, "a/b", file)
    assert second is not None
    assert second.chunks == {}
    second.close()


class FullDisk:
    """Refuses the n-th operation on files that can fail: open, write, allocate, sync, rename, link, list."""

    CALLS = ("posix_fallocate", "fsync", "replace", "rename", "utime", "symlink", "mkdir")

    def __init__(self, patch: pytest.MonkeyPatch, n: int) -> None:
        self.left = n
        self.patch = patch
        self.lock = threading.Lock()
        for name in self.CALLS:
            patch.setattr(os, name, self.counted(getattr(os, name)))
        patch.setattr(transfer.Transfer, "_write", self.counted(transfer.Transfer._write))
        patch.setattr(partials, "_write_all", self.counted(partials._write_all))
        patch.setattr(Path, "write_text", self.counted(Path.write_text))

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **more: Any) -> Any:
            with self.lock:
                self.left -= 1
                if self.left == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **more)

        return counting


def test_a_disk_that_fills_up_at_any_point(serve: Serve, access_to: AccessTo) -> None:
    """One hundred points, or as many as there are."""
    content = BIG[: 3 * CHUNK_BYTES + 5]
    hub = serve({"a/b": {"x.gguf": content, "config.json": b"{}"}})
    access, messages = access_to(hub), list[str]()
    for point in range(1, 101):
        with pytest.MonkeyPatch.context() as patch:
            full = FullDisk(patch, point)
            try:
                pull(access)
            except HubError as error:
                messages.append(error.message)
        for journal in access.cache.rglob("*-journal"):
            abandon(journal)  # the disk may have been too full even to say that it is free
        paths, _ = pull(access)
        assert paths[0].read_bytes() == content
        for path in access.cache.rglob("*"):
            if path.is_file() or path.is_symlink():
                path.unlink()
        if full.left > 0:
            break
    assert len(messages) >= 12, "how often a download notes where it is depends on the time it takes"
    assert all("is full" in message for message in messages)


def test_too_small_a_disk_is_known_before_the_first_byte(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve({"a/b": FILES})
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=len(BIG) - 1000))
    access = access_to(hub)
    with pytest.raises(HubError, match=r"1,008 bytes\) more are needed") as caught:
        pull(access)
    assert "localrun rm" in caught.value.hint
    assert hub.sent("big.gguf") == 0
    assert not access.cache.exists()


def test_a_folder_that_cannot_be_written(serve: Serve, access_to: AccessTo) -> None:
    access = access_to(serve({"a/b": FILES}))
    access.cache.parent.mkdir(parents=True, exist_ok=True)
    access.cache.write_text("a file in the way")
    with pytest.raises(HubError, match="cannot write to"):
        pull(access)


def test_a_download_that_was_stopped_goes_on_where_it_was(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.bytes_per_second = 3e6
    control = Control()

    def watch(event: DownloadEvent) -> None:
        if isinstance(event, DownloadProgress) and event.done > 3 * CHUNK_BYTES:
            control.cancel()

    access = access_to(hub)
    with pytest.raises(CancelledError, match="stopped"):
        pull(access, "big.gguf", on=watch, control=control)
    hub.bytes_per_second = None
    (path,), events = pull(access, "big.gguf")
    assert path.read_bytes() == BIG
    assert fetched(events) <= len(BIG) - 3 * CHUNK_BYTES


def test_a_file_that_was_replaced_on_the_hub_is_mentioned(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    access = access_to(hub)
    (old, _), _ = pull(access, "config.json", "big.gguf")
    hub.repos["a/b"] = FakeRepo({**FILES, "config.json": b"other"}, commit="d" * 40)
    (new, big), events = pull(access, "config.json", "big.gguf")
    assert (old.read_bytes(), new.read_bytes()) == (b'{"a": 1}', b"other")
    assert big.read_bytes() == BIG
    assert fetched(events) == 5
    texts = [event.text for event in events if isinstance(event, DownloadNotice)]
    assert texts == ["config.json has changed on the hub since an earlier download"]
    assert (access.cache / "models--a--b/refs/main").read_text() == "d" * 40


def test_systems_without_links_get_a_copy(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr(os, "link", refuse)
    access = access_to(serve({"a/b": FILES}))
    paths, _ = pull(access)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert not any(path.is_symlink() for path in paths)
    _, events = pull(access)
    assert fetched(events) == 0


def test_gated_unknown_and_offline(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FakeRepo(FILES, gated=True)}, token="hf_right")
    with pytest.raises(HubError, match="gated"):
        pull(access_to(hub))
    with pytest.raises(NotFoundError, match="no file"):
        pull(access_to(hub, "hf_right"), "other.gguf")
    with pytest.raises(HubError, match="offline"):
        pull(access_to(hub, offline=True))
    assert pull(access_to(hub, "hf_right"))[0][0].read_bytes() == BIG
