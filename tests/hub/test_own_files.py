"""Links, pipes and second names that somebody has put into the cache: nothing is written through them, nobody waits."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from localrun_testing.fake_hub import COMMIT, FakeHub

from localrun.base.errors import HubError
from localrun.hub.disk.hf_cache import blob_path, repo_folder
from localrun.hub.disk.library import scan
from localrun.hub.disk.own_files import is_own, open_own, replace_own
from localrun.hub.disk.removal import plan_partials
from localrun.hub.downloads.download import download
from localrun.hub.downloads.journal import JOURNAL, PART, read_chunks, read_head
from localrun.hub.downloads.partial import find_partials
from localrun.hub.network.access import Access, read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
BIG = random.Random(2).randbytes((5 << 20) + 123)
PRECIOUS = b"precious"


def plant(kind: str, at: Path, thesis: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "link":
            at.symlink_to(thesis)
        case "link to nothing":
            at.symlink_to(thesis.with_name("not-there"))
        case "second name":
            os.link(thesis, at)
        case "pipe":
            os.mkfifo(at)
        case "device":
            at.symlink_to("/dev/zero")


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    path = tmp_path / "thesis"
    path.write_bytes(PRECIOUS)
    return path


KINDS = ["link", "link to nothing", "second name", "pipe", "device"]


@pytest.mark.parametrize("what", ["part", "journal", "ref"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_download_writes_nothing_through_what_was_planted(
    serve: Serve, access_to: AccessTo, thesis: Path, kind: str, what: str
) -> None:
    access = access_to(serve({"a/b": {"big.gguf": BIG}}))
    http = Http(access)
    repo = read_repo(http, "a/b")
    (file,) = repo.files
    blob = blob_path(access.cache, "a/b", file)
    part, journal = f"{blob.name}.aaaaaaaaaaaa{PART}", f"{blob.name}.aaaaaaaaaaaa.bbbbbbbbbbbb{JOURNAL}"
    ref = repo_folder(access.cache, "a/b") / "refs/main"
    plant(kind, {"part": blob.with_name(part), "journal": blob.with_name(journal), "ref": ref}[what], thesis)
    if what == "part":
        head = {"repo": "a/b", "file": "big.gguf", "size": len(BIG), "host": "x", "pid": 1, "started": 0.0}
        blob.with_name(journal).write_text(json.dumps(head) + "\n")
        os.utime(blob.with_name(journal), (0, 0))
    (path,) = download(http, repo, [file])
    assert path.read_bytes() == BIG
    assert (thesis.read_bytes(), os.stat(thesis).st_size) == (PRECIOUS, len(PRECIOUS))
    assert not thesis.with_name("not-there").exists()
    assert is_own(blob)
    assert (is_own(ref), ref.read_text()) == (True, COMMIT)
    assert not [one for one in blob.parent.iterdir() if "aaaaaaaaaaaa" in one.name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_journal_or_ref_does_not_block(home: Path, thesis: Path, kind: str) -> None:
    folder = repo_folder(home / "huggingface/hub", "a/b")
    journal = folder / "blobs" / f"{'e' * 64}.aaaaaaaaaaaa.bbbbbbbbbbbb{JOURNAL}"
    plant(kind, journal, thesis)
    plant(kind, folder / "refs/main", thesis)
    (folder / "snapshots/x").mkdir(parents=True)
    assert read_head(journal) is None
    assert read_chunks(journal, 5) == {}
    assert not list(find_partials(folder / "blobs"))
    assert not plan_partials("a/b").files
    assert {model.source for model in scan()} == {"builtin"}


@pytest.mark.parametrize("kind", KINDS)
def test_only_files_of_our_own_are_opened_to_write(tmp_path: Path, thesis: Path, kind: str) -> None:
    plant(kind, tmp_path / "planted", thesis)
    assert not is_own(tmp_path / "planted")
    with pytest.raises(OSError, match="in the place of localrun's own file"):
        open_own(tmp_path / "planted", "ab")
    with pytest.raises(OSError, match=r"in the place of localrun's own file|exists"):
        open_own(tmp_path / "planted", "xb")
    replace_own(tmp_path / "planted", b"new")
    assert (thesis.read_bytes(), (tmp_path / "planted").read_bytes()) == (PRECIOUS, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["planted", "thesis"]


@pytest.mark.parametrize("moved", ["", "blobs", "snapshots", f"snapshots/{COMMIT}", "refs"])
def test_folders_may_be_links_where_names_are_hashes(
    serve: Serve, access_to: AccessTo, tmp_path: Path, moved: str
) -> None:
    """A repository that was moved to another disk goes on; under names of the hub's choice nothing is followed."""
    access = access_to(serve({"a/b": {"big.gguf": BIG}}))
    http = Http(access)
    place, elsewhere = repo_folder(access.cache, "a/b") / moved, tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    repo = read_repo(http, "a/b")
    if moved in ("", "blobs"):
        (path,) = download(http, repo, repo.files)
        assert path.read_bytes() == BIG
    else:
        with pytest.raises(HubError, match="changes and removes nothing behind a link"):
            download(http, repo, repo.files)
        assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "too large"])
def test_a_malformed_token_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "token"
    if kind == "folder":
        path.mkdir()
    elif kind == "too large":
        path.write_bytes(b"x" * 5000)
    else:
        plant(kind, path, path)
    with pytest.raises(HubError, match="no token can be read"):
        read_access(environ={"HF_TOKEN_PATH": str(path)})
