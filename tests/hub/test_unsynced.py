"""Power cuts: files that were complete and that the disk had not got are found out, mended, and never used before."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.fake_hub import FakeHub

from localrun.base.errors import HubError, NotFoundError
from localrun.hub.disk.library import scan, unfinished
from localrun.hub.disk.stored import stored_at
from localrun.hub.downloads import journal, unsynced
from localrun.hub.downloads.download import download
from localrun.hub.downloads.journal import CHUNK_BYTES, read_head
from localrun.hub.downloads.progress import DownloadEvent, DownloadFinished, DownloadNotice
from localrun.hub.downloads.unsynced import require_whole, write_out_now
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.resolve import resolve

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
NAME = "model-Q8_0.gguf"
DATA = random.Random(3).randbytes(6 * CHUNK_BYTES + 777)


class Pulled:
    """A file that has just arrived: its blob, its name, and the mark of what the disk may not have."""

    def __init__(self, hub: FakeHub, access: Access, path: Path) -> None:
        self.hub = hub
        self.access = access
        self.path = path
        self.blob = path.resolve()

    @property
    def marks(self) -> list[Path]:
        return list(self.blob.parent.glob("*.localrun-journal"))

    def reboot(self) -> None:
        """As if the machine had been started again since."""
        for mark in self.marks:
            lines = mark.read_text().split("\n")
            lines[0] = json.dumps({**json.loads(lines[0]), "boot": "another", "pid": 999999999})
            mark.write_text("\n".join(lines))

    def damage(self, *chunks: int, n_bytes: int = 4096) -> None:
        """Blocks that never reached the disk."""
        with self.blob.open("r+b") as file:
            for chunk in chunks:
                file.seek(chunk * CHUNK_BYTES + 8192)
                file.write(bytes(n_bytes))

    def pull(self) -> list[DownloadEvent]:
        events: list[DownloadEvent] = []
        http = Http(self.access)
        repo = read_repo(http, "a/b")
        download(http, repo, repo.files, events.append)
        return events


@pytest.fixture
def pulled(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> Pulled:
    monkeypatch.setattr(unsynced, "DELAY_SECONDS", 1000.0)
    hub = serve({"a/b": {NAME: DATA}})
    access = access_to(hub)
    monkeypatch.setenv("HF_HUB_CACHE", str(access.cache))
    http = Http(access)
    repo = read_repo(http, "a/b")
    return Pulled(hub, access, download(http, repo, repo.files)[0])


def fetched(events: list[DownloadEvent]) -> int:
    return sum(event.fetched for event in events if isinstance(event, DownloadFinished))


def test_a_file_is_there_before_the_disk_has_it_and_marked_until_then(pulled: Pulled) -> None:
    (mark,) = pulled.marks
    head = read_head(mark)
    assert head is not None
    assert (head.repo, head.file, head.size, head.boot) == ("a/b", NAME, len(DATA), journal.boot_id())
    assert pulled.path.read_bytes() == DATA
    assert resolve("a/b").path == pulled.path
    assert list(unfinished()) == []
    write_out_now(pulled.blob)
    assert pulled.marks == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not say what a descriptor is")
def test_the_mark_is_on_the_disk_before_the_file_is_in_its_place(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave a file that nobody suspects."""
    calls: list[str] = []
    sync, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name.startswith(str(access.cache)):  # what was fetched in another test is written out meanwhile
            calls.append("fsync " + name.rpartition("-")[2].rpartition("/")[2])
        sync(descriptor)

    def replace(source: str | Path, target: str | Path) -> None:
        calls.append(f"rename {str(source).rpartition('-')[2]}")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    hub = serve({"a/b": {NAME: DATA, "small.json": b"{}"}})
    access = access_to(hub)
    http = Http(access)
    repo = read_repo(http, "a/b")
    download(http, repo, [repo.file(NAME)])
    in_place = calls.index("rename part")
    assert calls[:in_place][-2:] == ["fsync journal", "fsync blobs"]
    assert "fsync part" not in calls
    calls.clear()
    (path,) = download(http, repo, [repo.file("small.json")])
    assert calls.index("fsync part") < calls.index("rename part")  # so little is waited for, and needs no mark
    assert not list(path.resolve().parent.glob(f"{path.resolve().name}.*"))


def test_the_disk_is_waited_for_in_the_background(pulled: Pulled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsynced, "DELAY_SECONDS", 0.01)
    unsynced._waiting.pop(pulled.blob).cancel()
    resolve("a/b")
    timer = unsynced._waiting.get(pulled.blob)
    if timer is not None:
        assert timer.daemon
        timer.join(60)
    assert pulled.marks == []
    assert pulled.blob not in unsynced._waiting


def test_in_the_same_boot_it_is_used_at_once(pulled: Pulled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsynced, "checksums", lambda path: pytest.fail("it was read"))
    assert resolve("a/b").path == pulled.path
    assert fetched(pulled.pull()) == 0
    assert len(pulled.marks) == 1


def test_after_a_reboot_it_is_checked_once(pulled: Pulled, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled.reboot()
    assert resolve("a/b").path == pulled.path
    assert pulled.marks == []
    monkeypatch.setattr(unsynced, "checksums", lambda path: pytest.fail("it was read"))
    assert resolve("a/b").path == pulled.path


@pytest.mark.parametrize("by_path", [False, True])
def test_a_power_cut_costs_the_chunks_that_it_took(pulled: Pulled, by_path: bool) -> None:
    pulled.reboot()
    pulled.damage(1, 4)
    with pytest.raises(NotFoundError, match="is damaged: the machine stopped") as caught:
        resolve(str(pulled.path) if by_path else "a/b")
    assert "localrun pull a/b:Q8_0" in caught.value.hint
    assert not pulled.blob.exists()  # nobody else takes it for good either
    assert not pulled.path.is_symlink()
    assert scan_of_cache() == []
    ((_, head, there),) = unfinished()
    assert (head.file, there) == (NAME, 5 * CHUNK_BYTES)
    events = pulled.pull()
    assert fetched(events) == 2 * CHUNK_BYTES
    assert pulled.path.read_bytes() == DATA
    assert resolve("a/b").path == pulled.path


def scan_of_cache() -> list[str]:
    return [model.name for model in scan() if model.source == "hub"]


@pytest.mark.parametrize(
    ("what", "content"),
    [
        ("nothing", b""),
        ("garbage", random.Random(4).randbytes(5000)),
        ("a deep head", b"[" * 60_000),
        ("a head that is a list", b"[1, 2]\n0 00000000\n"),
        ("a head of other types", b'{"repo": 1, "file": [], "size": "x", "host": {}, "pid": 0, "started": 0}\n'),
        ("no lines", b'{"repo": "a/b", "file": "x", "size": %d, "host": "h", "pid": 1, "started": 0}\n'),
        ("another size", b'{"repo": "a/b", "file": "x", "size": 5, "host": "h", "pid": 1, "started": 0}\n0 00000001\n'),
        ("an enormous size", b'{"repo": "a", "file": "x", "size": 1%s, "host": "h", "pid": 1, "started": 0}\n'),
        ("endless lines", b"endless"),
    ],
)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_mark_that_makes_no_sense_leaves_it_to_the_hash(
    pulled: Pulled, what: str, content: bytes, is_damaged: bool
) -> None:
    (mark,) = pulled.marks
    if what == "no lines":
        content %= len(DATA)
    if what == "an enormous size":
        content %= b"0" * 400
    mark.write_bytes(content)
    if what == "endless lines":
        with mark.open("wb") as file:
            file.truncate(100 << 30)
    if is_damaged:
        pulled.damage(2)
        with pytest.raises(NotFoundError, match="is damaged"):
            resolve("a/b")
        assert not pulled.blob.exists()
        pulled.pull()
        assert pulled.path.read_bytes() == DATA
    else:
        assert resolve("a/b").path == pulled.path
        assert pulled.marks == []


def test_a_mark_with_wrong_checksums_condemns_nothing(pulled: Pulled) -> None:
    pulled.reboot()
    (mark,) = pulled.marks
    mark.write_bytes(mark.read_bytes().replace(b"\n3 ", b"\n4 "))
    assert resolve("a/b").path == pulled.path
    assert pulled.marks == []


@pytest.mark.parametrize("size", [0, 3 * CHUNK_BYTES + 5, len(DATA) - 1])
def test_a_file_that_lost_its_end(pulled: Pulled, size: int) -> None:
    pulled.reboot()
    os.truncate(pulled.blob, size)
    events = pulled.pull()
    assert any(isinstance(event, DownloadNotice) and "had not reached the disk" in event.text for event in events)
    assert pulled.path.read_bytes() == DATA
    assert fetched(events) == len(DATA) - size // CHUNK_BYTES * CHUNK_BYTES


def test_another_power_cut_while_it_is_mended(pulled: Pulled) -> None:
    pulled.reboot()
    pulled.damage(0, 3)
    with pytest.raises(NotFoundError):
        resolve("a/b")
    part = next(pulled.blob.parent.glob("*-part"))
    with part.open("r+b") as file:
        file.seek(2 * CHUNK_BYTES)
        file.write(bytes(4096))
    assert fetched(pulled.pull()) == 3 * CHUNK_BYTES
    assert pulled.path.read_bytes() == DATA


def test_one_of_several_files(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsynced, "DELAY_SECONDS", 1000.0)
    names = [f"m-Q4_0-0000{number}-of-00002.gguf" for number in (1, 2)]
    hub = serve({"a/b": {name: DATA[number:] for number, name in enumerate(names)}})
    access = access_to(hub)
    http = Http(access)
    repo = read_repo(http, "a/b")
    first, second = (Pulled(hub, access, path) for path in download(http, repo, repo.files))
    first.reboot()
    second.damage(5)
    model = stored_at(first.path, "hub", "a/b")[0]
    with pytest.raises(NotFoundError, match="is damaged"):
        require_whole(model)
    assert first.path.is_file()
    assert fetched(first.pull()) == CHUNK_BYTES
    require_whole(stored_at(first.path, "hub", "a/b")[0])


def test_a_disk_that_refuses_is_not_trusted_in_the_same_boot(pulled: Pulled, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        write_out_now(pulled.blob)
    pulled.damage(3)
    with pytest.raises(NotFoundError, match="is damaged"):
        resolve("a/b")
    assert fetched(pulled.pull()) == CHUNK_BYTES


def test_a_file_that_cannot_be_read_says_so(pulled: Pulled, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    pulled.reboot()
    monkeypatch.setattr(unsynced, "checksums", refuse)
    with pytest.raises(HubError, match=r"cannot check .*Input/output error"):
        resolve("a/b")


def test_a_copy_waits_for_the_disk_at_once(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a system has no links the copy has no mark that anybody would find."""

    def refuse(*args: object, **more: object) -> None:
        raise OSError("no links here")

    waited: list[str] = []
    monkeypatch.setattr(unsynced, "write_out", lambda path: waited.append(path.name))
    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr(os, "link", refuse)
    hub = serve({"a/b": {NAME: DATA}})
    http = Http(access_to(hub))
    repo = read_repo(http, "a/b")
    (path,) = download(http, repo, repo.files)
    assert waited == [NAME, hub.etag(DATA)]
    assert not list(path.parents[2].rglob("*-journal"))


def test_other_programs_see_an_ordinary_file_and_may_do_with_it_what_they_like(pulled: Pulled) -> None:
    hub = pytest.importorskip("huggingface_hub")
    cache = pulled.access.cache
    found = hub.scan_cache_dir(cache)
    assert not found.warnings
    assert [file.size_on_disk for repo in found.repos for file in next(iter(repo.revisions)).files] == [len(DATA)]
    assert hub.try_to_load_from_cache("a/b", NAME, cache_dir=cache) == str(pulled.path)
    pulled.reboot()
    again = pulled.blob.with_name("theirs")  # replaced by the same file
    shutil.copyfile(pulled.blob, again)
    os.replace(again, pulled.blob)
    assert resolve("a/b").path == pulled.path
    shutil.rmtree(cache / "models--a--b")
    pulled.pull()
    pulled.reboot()
    (revision,) = next(iter(hub.scan_cache_dir(cache).repos)).revisions
    hub.scan_cache_dir(cache).delete_revisions(revision.commit_hash).execute()
    assert fetched(pulled.pull()) == len(DATA)


def test_a_blob_that_others_removed_is_fetched_again(pulled: Pulled) -> None:
    pulled.blob.unlink()
    assert list(unfinished()) == []
    assert fetched(pulled.pull()) == len(DATA)
    assert pulled.path.read_bytes() == DATA
    assert len(pulled.marks) == 1


PULL_OR_USE = """
import json, sys
from localrun.base.errors import NotFoundError
from localrun.hub.network.access import read_access
from localrun.hub.remote.api import read_repo
from localrun.hub.downloads.download import download
from localrun.hub.network.http import Http
from localrun.hub.resolve import resolve
print("go", flush=True)
sys.stdin.readline()
try:
    print(resolve("a/b").path.read_bytes() == open(sys.argv[1], "rb").read())
except NotFoundError:
    http = Http(read_access())
    repo = read_repo(http, "a/b")
    (path,) = download(http, repo, repo.files)
    print(path.read_bytes() == open(sys.argv[1], "rb").read())
"""


@pytest.mark.parametrize("chunks", [(), (1, 5)])
def test_several_processes_check_and_mend_one_file(pulled: Pulled, chunks: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(DATA)
    pulled.reboot()
    pulled.damage(*chunks)
    sent = pulled.hub.sent(NAME)
    own = {"HF_ENDPOINT": pulled.hub.url, "HF_HUB_OFFLINE": "0", "PYTHONPATH": str(REPOSITORY)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PULL_OR_USE, tmp_path / "data"],
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
    for process in processes:  # all at once
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert out == "True\n", err
    assert pulled.hub.sent(NAME) - sent <= len(chunks) * CHUNK_BYTES


@pytest.mark.parametrize("moment", ["utime", "replace"])
def test_another_process_fetches_it_again_while_we_give_it_back(
    pulled: Pulled, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds what it needs at every moment, and what it has put in place stays."""
    pulled.reboot()
    pulled.damage(1, 5)
    sent = pulled.hub.sent(NAME)
    ours: Callable[..., None] = getattr(os, moment)

    def then_another(*args: object) -> None:
        ours(*args)
        monkeypatch.setattr(os, moment, ours)
        pulled.pull()

    monkeypatch.setattr(os, moment, then_another)
    with pytest.raises(NotFoundError, match="is damaged"):
        resolve("a/b")
    assert resolve("a/b").path.read_bytes() == DATA
    assert pulled.hub.sent(NAME) - sent <= 2 * CHUNK_BYTES


def test_a_model_that_another_process_takes_back_is_not_given(pulled: Pulled) -> None:
    found = resolve("a/b")
    pulled.path.unlink()
    with pytest.raises(NotFoundError, match="is not on the disk any more") as error:
        require_whole(found)
    assert error.value.hint == f"`localrun pull a/b:{found.precision}` fetches it again"


@pytest.mark.skipif(not Path("/proc/sys/kernel/random/boot_id").exists(), reason="Linux has a name for a boot")
def test_the_boot_is_told_by_the_clock_where_the_system_has_no_name_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*args: object, **more: object) -> None:
        raise FileNotFoundError

    assert journal.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    monkeypatch.setattr("builtins.open", none)
    monkeypatch.setattr("psutil.boot_time", lambda: 1_700_000_015.0)
    journal.boot_id.cache_clear()
    first = journal.boot_id()
    monkeypatch.setattr("psutil.boot_time", lambda: 1_700_000_300.0)
    journal.boot_id.cache_clear()
    assert journal.boot_id() != first
    journal.boot_id.cache_clear()
