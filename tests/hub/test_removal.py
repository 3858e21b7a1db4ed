"""Removing frees what was announced and touches nothing else; other programs' models are seen and left alone."""

import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from localrun_testing.fake_hub import FakeHub, FakeRepo

from localrun.base.errors import HubError, UsageError
from localrun.hub.access import Access, read_access
from localrun.hub.api import read_repo
from localrun.hub.download import download
from localrun.hub.duplicates import find_duplicates, reclaimable
from localrun.hub.http import Http
from localrun.hub.library import scan
from localrun.hub.removal import plan_partials, plan_removal
from localrun.hub.resolve import resolve
from localrun.hub.stored import StoredModel

Serve = Callable[..., FakeHub]
DATA = {name: random.Random(name).randbytes(20_000) for name in ("q8", "q4", "other")}
FILES = {"b-Q8_0.gguf": DATA["q8"], "b-Q4_0.gguf": DATA["q4"], "config.json": b"{}"}


def snapshot(root: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_size for path in root.rglob("*") if path.is_symlink() or path.is_file()}


@pytest.fixture
def access(serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch) -> Access:
    """org/b downloaded, and org/other beside it."""
    hub = serve({"org/b": FILES, "org/other": {"other-Q8_0.gguf": DATA["other"]}})
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    access = read_access()
    assert access.cache == home / "huggingface/hub"
    http = Http(access)
    for name in ("org/b", "org/other"):
        repo = read_repo(http, name)
        download(http, repo, repo.files)
    return access


def test_one_precision_goes_and_everything_else_stays(access: Access) -> None:
    before = snapshot(access.cache)
    removal = plan_removal([resolve("org/b", "Q8_0")])
    assert snapshot(access.cache) == before
    assert removal.freed == 20_000
    removal.execute()
    gone = set(before) - set(snapshot(access.cache))
    assert sorted(Path(path).name for path in gone if "snapshots" in path) == ["b-Q8_0.gguf"]
    assert len(gone) == 2
    assert [model.precision for model in scan() if model.name == "org/b"] == ["Q4_0"]


def test_the_last_precision_takes_the_rest_of_the_repository_along(access: Access) -> None:
    removal = plan_removal([model for model in scan() if model.name == "org/b"])
    assert removal.freed == 40_002
    removal.execute()
    assert all("org--other" in path for path in snapshot(access.cache) if "blobs" in path or "snapshots" in path)


def test_bytes_that_another_revision_needs_stay(serve: Serve, home: Path, access: Access) -> None:
    hub = serve({"org/b": FakeRepo({"renamed-Q8_0.gguf": DATA["q8"]}, commit="d" * 40)})
    http = Http(Access(hub.url, cache=access.cache))
    repo = read_repo(http, "org/b")
    download(http, repo, repo.files)
    removal = plan_removal([model for model in scan() if model.path.name == "b-Q8_0.gguf"])
    assert removal.freed == 0
    removal.execute()
    (left,) = [model for model in scan() if model.name == "org/b" and model.precision == "Q8_0"]
    assert left.path.read_bytes() == DATA["q8"]


def test_our_own_folder(home: Path, tmp_path: Path) -> None:
    folder = home / "models/org/tiny"
    folder.mkdir(parents=True)
    for part in (1, 2):
        (folder / f"big-Q8_0-{part:05d}-of-00002.gguf").write_bytes(bytes(part))
    outside = tmp_path / "precious.gguf"
    outside.write_bytes(b"precious")
    (home / "models/linked-Q4_0.gguf").symlink_to(outside)
    removal = plan_removal([resolve("big")])
    assert (removal.freed, len(removal.files)) == (3, 2)
    removal.execute()
    assert not folder.exists()
    plan_removal([resolve("linked")]).execute()
    assert outside.read_bytes() == b"precious"
    assert not (home / "models/linked-Q4_0.gguf").is_symlink()
    assert (home / "models").is_dir()


def test_a_folder_that_leads_outside_is_not_followed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "x-Q8_0.gguf").write_bytes(b"precious")
    (home / "models").mkdir(parents=True)
    (home / "models/link").symlink_to(outside)
    model = StoredModel("x", "Q8_0", home / "models/link/x-Q8_0.gguf", 8, "gguf", "models")
    with pytest.raises(HubError, match="is not inside"):
        plan_removal([model]).execute()
    assert (outside / "x-Q8_0.gguf").exists()


@pytest.mark.parametrize("source", ["builtin", "path", "ollama", "lmstudio"])
def test_what_is_not_ours_stays(source: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"x")
    with pytest.raises(UsageError, match="stays") as caught:
        plan_removal([StoredModel("x", "Q8_0", path, 1, "gguf", source)])  # type: ignore[arg-type]
    assert caught.value.hint
    assert path.exists()


def test_unfinished_downloads_can_be_removed(access: Access) -> None:
    blobs = access.cache / "models--org--b/blobs"
    name = f"{'a' * 64}.part1.owner1"
    head = {"repo": "org/b", "file": "x", "size": 5 << 20, "host": "gone", "pid": 1, "started": 0}
    journal = blobs / f"{name}.localrun-journal"
    journal.write_text(json.dumps(head) + "\n0 00000000\n")
    (blobs / f"{'a' * 64}.part1.localrun-part").write_bytes(b"x")
    assert plan_partials("org/b").freed == 0
    os.utime(journal, (0, 0))
    removal = plan_partials("org/b")
    assert removal.freed == 1 << 20
    removal.execute()
    assert not [path for path in blobs.iterdir() if "localrun" in path.name]


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    return tmp_path


def put_ollama(root: Path, name: str, content: bytes, digest: str) -> None:
    manifest = root / f"manifests/registry.ollama.ai/{name}"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    (root / "blobs").mkdir(exist_ok=True)
    (root / f"blobs/sha256-{digest}").write_bytes(content)
    config = "c" * 64
    (root / f"blobs/sha256-{config}").write_text(json.dumps({"model_format": "gguf", "file_type": "Q4_K_M"}))
    layers = [
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
        {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'d' * 64}"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"},
        7,
    ]
    manifest.write_text(json.dumps({"config": {"digest": f"sha256:{config}"}, "layers": layers}))


def test_models_of_other_programs_are_used_where_they_are(user_home: Path) -> None:
    put_ollama(user_home / ".ollama/models", "library/llama3.2/3b", b"ollama", "b" * 64)
    put_ollama(user_home / ".ollama/models", "someone/tuned/latest", b"tuned", "e" * 64)
    (user_home / ".ollama/models/manifests/registry.ollama.ai/library/broken").mkdir(parents=True)
    (user_home / ".ollama/models/manifests/registry.ollama.ai/library/broken/latest").write_text("{")
    studio = user_home / ".lmstudio/models/publisher/repo-GGUF"
    studio.mkdir(parents=True)
    (studio / "repo-Q6_K.gguf").write_bytes(b"studio")
    rows = {(m.name, m.precision, m.bytes, m.source) for m in scan() if m.source in ("ollama", "lmstudio")}
    assert rows == {
        ("llama3.2:3b", "Q4_K_M", 6, "ollama"),
        ("someone/tuned:latest", "Q4_K_M", 5, "ollama"),
        ("publisher/repo-GGUF", "Q6_K", 6, "lmstudio"),
    }
    assert resolve("llama3.2:3b").path.read_bytes() == b"ollama"
    assert resolve("publisher/repo-GGUF:Q6_K").path.read_bytes() == b"studio"


def test_duplicates_by_hash(user_home: Path, access: Access) -> None:
    digest = hashlib.sha256(DATA["q8"]).hexdigest()
    put_ollama(user_home / ".ollama/models", "library/b/8", DATA["q8"], digest)
    (group,) = find_duplicates(scan())
    assert {model.source for model in group} == {"hub", "ollama"}
    assert reclaimable(group) == 20_000

    studio = user_home / ".lmstudio/models/publisher/repo"
    studio.mkdir(parents=True)
    (studio / "b-Q8_0.gguf").write_bytes(DATA["q8"])
    os.link(studio / "b-Q8_0.gguf", studio / "hard-link-Q8_0.gguf")
    assert len(find_duplicates(scan())[0]) == 2
    (group,) = find_duplicates(scan(), read=True)
    assert len(group) == 3
