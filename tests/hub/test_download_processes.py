"""Processes that are killed, that meet on one file, and the real client of the hub beside ours."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.fake_hub import LARGE, FakeHub, FakeRepo

from localrun.hub.downloads import partial
from localrun.hub.downloads.download import download
from localrun.hub.downloads.journal import CHUNK_BYTES, JOURNAL, journals_of, part_of, write_journal
from localrun.hub.downloads.partial import _take_over, open_partial
from localrun.hub.downloads.transfer import CONNECTIONS
from localrun.hub.downloads.unsynced import write_out_now
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.repo import RemoteFile

pytestmark = pytest.mark.process

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]

OURS = """
import sys
from pathlib import Path
from localrun.hub.network.access import read_access
from localrun.hub.remote.api import read_repo
from localrun.hub.downloads.download import download
from localrun.hub.network.http import Http
http = Http(read_access())
repo = read_repo(http, "a/b")
print("go", flush=True)
download(http, repo, repo.files)
"""
THEIRS = """
import huggingface_hub as hub
path = hub.hf_hub_download("a/b", "x.gguf", local_files_only=True)
found = hub.scan_cache_dir()
(repo,) = found.repos
(revision,) = repo.revisions
assert not found.warnings
assert sorted(file.file_name for file in revision.files) == ["config.json", "x.gguf"]
assert "main" in revision.refs
assert hub.try_to_load_from_cache("a/b", "config.json").endswith("config.json")
print(path)
"""
DOWNLOAD = """
import huggingface_hub as hub
hub.hf_hub_download("a/b", "x.gguf")
hub.hf_hub_download("a/b", "config.json")
"""


def content(n_bytes: int) -> bytes:
    return b"".join(random.Random(seed).randbytes(1 << 20) for seed in range(n_bytes >> 20)) + b"tail"


def environment(access: Access, token: str = "") -> dict[str, str]:
    own = {"HF_ENDPOINT": access.endpoint, "HF_HUB_CACHE": str(access.cache), "HF_HUB_OFFLINE": "0"}
    own |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(REPOSITORY)}
    return {**os.environ, **own} | ({"HF_TOKEN": token} if token else {})


def start(access: Access, code: str = OURS) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(access),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def blob(access: Access, hub: FakeHub, data: bytes) -> Path:
    return access.cache / "models--a--b/blobs" / hub.etag(data)


def cut_and_kill(hub: FakeHub, access: Access, data: bytes, cuts: int, seed: int) -> float:
    """Cut connections and kill the client `cuts` times at random; gives the bytes fetched twice, per cut."""
    dice = random.Random(seed)
    for number in range(cuts):
        if blob(access, hub, data).exists():
            break
        if number % 2:
            hub.break_file("x.gguf", "cut", times=1, at=dice.randrange(2 * CHUNK_BYTES))
            continue
        process = start(access)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    hub.trouble.clear()
    finish(start(access))
    assert blob(access, hub, data).read_bytes() == data
    write_out_now(blob(access, hub, data))
    assert [path.name for path in blob(access, hub, data).parent.iterdir()] == [hub.etag(data)]
    return (hub.sent("x.gguf") - len(data)) / cuts


# A cut loses what lay in the buffers of its connection; a kill also the chunk that each connection was in.
PER_CUT = CONNECTIONS * 2 * CHUNK_BYTES


def test_killed_and_cut_downloads_end_bit_for_bit_right(serve: Serve, access_to: AccessTo) -> None:
    data = content(24 << 20)
    hub = serve({"a/b": {"x.gguf": data}})
    hub.bytes_per_second = 6e6
    assert cut_and_kill(hub, access_to(hub), data, cuts=8, seed=1) <= PER_CUT


@pytest.mark.slow
def test_a_quarter_gigabyte_with_fifty_cuts_and_kills(serve: Serve, access_to: AccessTo) -> None:
    data = content(256 << 20)
    hub = serve({"a/b": {"x.gguf": data}})
    hub.bytes_per_second = 8e6
    assert cut_and_kill(hub, access_to(hub), data, cuts=50, seed=2) <= CONNECTIONS * CHUNK_BYTES


def eight_on_one_file(hub: FakeHub, access: Access, data: bytes, n_processes: int) -> int:
    """Several processes at once; gives the bytes that the servers sent."""
    before = hub.sent("x.gguf")
    for process in [start(access) for _ in range(n_processes)]:
        finish(process)
    found = blob(access, hub, data)
    assert found.read_bytes() == data
    assert [path.name for path in found.parent.iterdir()] == [found.name]
    return hub.sent("x.gguf") - before


def test_processes_that_meet_on_one_file(serve: Serve, access_to: AccessTo) -> None:
    data = content(2 << 20)
    hub = serve({"a/b": {"x.gguf": data}})
    assert eight_on_one_file(hub, access_to(hub), data, 4) < 4 * len(data)


@pytest.mark.parametrize("has_old", [True, False])
def test_a_part_that_another_process_takes_over_meanwhile_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_old: bool
) -> None:
    """Whether a list of journals has the old one still, or none at all: a folder is not listed in one moment."""
    file = RemoteFile("x.gguf", 5 * CHUNK_BYTES, "e" * 64)
    blob = tmp_path / "blobs" / file.etag
    blob.parent.mkdir()
    old = blob.with_name(f"{blob.name}.zz.zz{JOURNAL}")  # the last of all names
    write_journal(old, "a/b", file, {})
    part_of(old).touch()
    taken = _take_over(old, "another", "a/b", file)
    assert taken is not None
    listings = [[old] if has_old else [], [taken]]
    monkeypatch.setattr(partial, "journals_of", lambda blob: listings.pop(0))
    assert open_partial(blob, "a/b", file) is None
    assert journals_of(blob) == [taken]
    assert part_of(taken).exists()


@pytest.mark.slow
def test_eight_processes_on_one_file_fifty_times(serve: Serve, access_to: AccessTo) -> None:
    """No lock of the file system is used, so none is needed."""
    data = content(2 << 20)
    hub = serve({"a/b": {"x.gguf": data}})
    access = access_to(hub)
    for _ in range(50):
        eight_on_one_file(hub, access, data, 8)
        for path in access.cache.rglob("*"):
            if path.is_file() or path.is_symlink():
                path.unlink()


def test_the_real_client_reads_our_cache(serve: Serve, access_to: AccessTo) -> None:
    pytest.importorskip("huggingface_hub")
    files = {"x.gguf": content(1 << 20), "config.json": b"{}"}
    access = access_to(serve({"a/b": files}))
    http = Http(access)
    repo = read_repo(http, "a/b")
    paths = download(http, repo, repo.files)
    assert Path(finish(start(access, THEIRS)).strip()) == paths[0]


def test_we_read_the_cache_of_the_real_client(serve: Serve, access_to: AccessTo) -> None:
    pytest.importorskip("huggingface_hub")
    files = {"x.gguf": content(1 << 20), "config.json": b"{}"}
    hub = serve({"a/b": files})
    access = access_to(hub)
    finish(start(access, DOWNLOAD))
    sent = hub.sent("x.gguf")
    http = Http(access)
    repo = read_repo(http, "a/b")
    assert [path.read_bytes() for path in download(http, repo, repo.files)] == list(files.values())
    assert hub.sent("x.gguf") == sent


LARGE_FILES = """
import sys
from localrun.hub.downloads import download as downloads
downloads.PLAIN_HTTP_BYTES = 1000
from localrun.hub.network.access import read_access
from localrun.hub.remote.api import read_repo
from localrun.hub.network.http import Http
from localrun.hub.downloads.progress import DownloadFinished
http = Http(read_access())
repo = read_repo(http, "a/b")
tell = lambda event: isinstance(event, DownloadFinished) and print(event.fetched)
(path,) = downloads.download(http, repo, repo.files, tell)
"""


def test_very_large_files_come_through_the_real_client_and_are_checked_by_us(serve: Serve, access_to: AccessTo) -> None:
    data = content(2 << 20)
    hub = serve({"a/b": {"x.gguf": data}})
    access = access_to(hub)
    assert finish(start(access, LARGE_FILES)).strip() == str(len(data))
    assert blob(access, hub, data).read_bytes() == data
    blob(access, hub, data).unlink()
    hub.break_file("x.gguf", "flip", at=1_000_000)
    process = start(access, LARGE_FILES)
    _, err = process.communicate(timeout=60)
    assert "does not have the checksum" in err
    assert not blob(access, hub, data).exists()


def test_the_token_is_sent_to_the_hub_only(serve: Serve, access_to: AccessTo, tmp_path: Path) -> None:
    """Not by the store, on no command line, in no file, and in no output, whether all goes well or not."""
    canary = "hf_CanaryCanaryCanary"
    hub = serve({"a/b": FakeRepo({"x.gguf": bytes(LARGE)}, gated=True)}, token=canary)
    access = access_to(hub)
    out = ""
    for trouble in ("", "busy", "html", "flip", "cut"):
        if trouble:
            hub.break_file("x.gguf", trouble, times=2)
        done = subprocess.run(
            [sys.executable, "-c", OURS],
            env={**environment(access, canary), "LOCALRUN_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
        )
        out += done.stdout + done.stderr
        for path in access.cache.rglob("blobs/*"):
            path.unlink()
    assert out.count("go\n") == 5
    assert canary not in out
    assert {seen.token for seen in hub.seen if seen.server == "hub"} == {canary}
    assert {seen.token for seen in hub.seen if seen.server == "store"} == {""}
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not any(canary.encode() in data for data in kept)
