"""Removing frees what was announced and touches nothing else; other programs' models are seen and left alone."""

import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import FakeHub, FakeRepo

from localrun.base.errors import HubError, UsageError
from localrun.base.file_use import FileUse
from localrun.hub.disk import safe_remove
from localrun.hub.disk.duplicates import find_duplicates, reclaimable
from localrun.hub.disk.library import scan
from localrun.hub.disk.removal import discard, plan_partials, plan_removal
from localrun.hub.disk.stored import StoredModel
from localrun.hub.downloads.download import download
from localrun.hub.network.access import Access, read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.resolve import resolve
from localrun.storage.label import Label, write_label
from localrun.storage.weight_store import PACKED_FOLDER

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


def packed(home: Path, name: str, path: Path, nbytes: int) -> Path:
    """Packed weights, as a load leaves them."""
    folder = home / "cache" / PACKED_FOLDER / name
    folder.mkdir(parents=True)
    (folder / "layers.0.up.packed").write_bytes(bytes(nbytes))
    write_label(folder, Label("b", str(path), "auto", weights=name))
    return folder


def test_packed_weights_go_with_their_model(access: Access, home: Path) -> None:
    q8, q4 = resolve("org/b", "Q8_0"), resolve("org/b", "Q4_0")
    own = [packed(home, "a", q8.path, 300), packed(home, "b", q8.path, 30)]
    others = packed(home, "c", q4.path, 3)
    removal = plan_removal([q8])
    assert removal.freed == 20_330
    assert {one.folder for one in removal.packed} == set(own)
    removal.execute()
    assert not any(folder.exists() for folder in own)
    assert others.exists(), "another precision's"
    mine = home / "models/mine-Q8_0.gguf"
    mine.parent.mkdir(exist_ok=True)
    mine.write_bytes(bytes(5))
    folder = packed(home, "d", mine, 7)
    removal = plan_removal([resolve("mine")])
    assert removal.freed == 12
    removal.execute()
    assert not folder.exists()
    assert others.exists()


@pytest.mark.skipif(os.name != "posix", reason="windows refuses to delete what is open by itself")
def test_who_has_a_model_loaded_is_named(access: Access) -> None:
    q8, q4 = resolve("org/b", "Q8_0"), resolve("org/b", "Q4_0")
    use = FileUse(q8.path)
    assert plan_removal([q4]).in_use == ""
    assert "cannot be loaded again" in plan_removal([q4, q8]).in_use
    use.end()
    assert plan_removal([q8]).in_use == ""


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
    with pytest.raises(HubError, match="nothing behind a link"):
        plan_removal([model]).execute()
    assert (outside / "x-Q8_0.gguf").exists()


Attack = Callable[[Path, Path], None]  # (the folder of org/b in the cache, a folder of somebody's own)
COMMIT = "c0ffee" * 6 + "c0de"


def point(path: Path, target: Path | str) -> None:
    """Make `path` a link to `target`, whatever it was before."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}-before"))
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def move_out(path: Path, own: Path) -> None:
    """Put a folder elsewhere and a link in its place."""
    path.rename(own / "moved")
    path.symlink_to(own / "moved")


def loop(repo: Path, own: Path) -> None:
    """A name that leads to a blob that leads to the name."""
    name = repo / f"snapshots/{COMMIT}/config.json"
    blob = name.resolve()
    point(blob, name)


ONLY_THE_LINK_GOES: dict[str, Attack] = {
    "a file": lambda repo, own: point(repo / f"snapshots/{COMMIT}/config.json", own / "thesis.docx"),
    "weights": lambda repo, own: point(repo / f"snapshots/{COMMIT}/b-Q8_0.gguf", own / "thesis.docx"),
    "one more name": lambda repo, own: point(repo / f"snapshots/{COMMIT}/more", own / "thesis.docx"),
    "a folder": lambda repo, own: point(repo / f"snapshots/{COMMIT}/figures", own / "letters"),
    "another snapshot": lambda repo, own: point(repo / f"snapshots/{'e' * 40}", own / "figures"),
    "a blob": lambda repo, own: point((repo / f"snapshots/{COMMIT}/config.json").resolve(), own / "thesis.docx"),
    "an unknown blob": lambda repo, own: point(repo / f"blobs/{'e' * 40}", own / "thesis.docx"),
    "a folder of blobs": lambda repo, own: point(repo / f"blobs/{'e' * 64}", own / "letters"),
    "through blobs": lambda repo, own: point(
        repo / f"snapshots/{COMMIT}/config.json", f"../../blobs/../../../../../../{own.name}/thesis.docx"
    ),
    "blobs itself": lambda repo, own: point(repo / f"snapshots/{COMMIT}/config.json", "../../blobs/.."),
    "blobs of another repository": lambda repo, own: point(
        repo / f"snapshots/{COMMIT}/config.json", next((repo.parent / "models--org--other/blobs").iterdir())
    ),
    "a revision": lambda repo, own: point(repo / "refs/main", own / "thesis.docx"),
    "all revisions": lambda repo, own: move_out(repo / "refs", own),
    "what is missing": lambda repo, own: point(repo / ".no_exist", own / "letters"),
    "nowhere": lambda repo, own: point(repo / f"snapshots/{COMMIT}/config.json", "/nowhere"),
    "itself": lambda repo, own: point(repo / f"snapshots/{COMMIT}/more", repo / f"snapshots/{COMMIT}/more"),
    "a loop": loop,
}
REFUSED: dict[str, Attack] = {
    "the repository": move_out,
    "snapshots": lambda repo, own: move_out(repo / "snapshots", own),
    "the snapshot": lambda repo, own: move_out(repo / f"snapshots/{COMMIT}", own),
    "blobs": lambda repo, own: move_out(repo / "blobs", own),
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Files that are none of our business."""
    own = tmp_path / "own"
    (own / "letters").mkdir(parents=True)
    (own / "figures").mkdir()
    (own / "figures/one.svg").write_text("drawn")
    (own / "letters/one.txt").write_text("dear")
    (own / "letters/empty").touch()
    (own / "letters/x-Q8_0.gguf").write_bytes(b"precious")
    (own / "letters/config.json").write_text("{}")
    (own / "thesis.docx").write_text("precious")
    return own


def contents(*roots: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for root in roots for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("attack", ONLY_THE_LINK_GOES.values(), ids=ONLY_THE_LINK_GOES)
@pytest.mark.parametrize("all_of_it", [False, True])
def test_removal_does_not_follow_links(access: Access, own: Path, attack: Attack, all_of_it: bool) -> None:
    repo, other = access.cache / "models--org--b", access.cache / "models--org--other"
    attack(repo, own)
    before = contents(own, other)
    here = contents(repo)
    models = [model for model in scan() if model.name == "org/b" and (all_of_it or model.precision == "Q8_0")]
    removal = plan_removal(models)
    assert contents(repo) == here
    removal.execute()
    assert contents(own, other) == before
    kept = [model.precision for model in scan() if model.name == "org/b"]
    assert kept == ([] if all_of_it else ["Q4_0"])
    assert removal.freed <= 20_000 * len(models) + 2 * all_of_it


@pytest.mark.parametrize("attack", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_removed_behind_a_link(access: Access, own: Path, attack: Attack, late: bool) -> None:
    """Also where the link comes between the question and its answer."""
    repo = access.cache / "models--org--b"
    models = [model for model in scan() if model.name == "org/b"]
    removal = plan_removal(models) if late else None
    attack(repo, own)
    before = contents(own)
    with pytest.raises(HubError, match=r"leads to .*; localrun changes and removes nothing behind a link"):
        (removal or plan_removal(models)).execute()
    assert contents(own) == before


def test_a_link_that_comes_between_two_files(access: Access, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = access.cache / "models--org--b"
    removal = plan_removal([model for model in scan() if model.name == "org/b"])
    for path in removal.files:
        (own / "letters" / path.name).write_text("precious")
    before = contents(own)
    unlink = os.unlink

    def swap_then_unlink(*arguments: Any, **more: Any) -> None:
        if not (repo / "before").exists():
            (repo / f"snapshots/{COMMIT}").rename(repo / "before")
            (repo / f"snapshots/{COMMIT}").symlink_to(own / "letters")
        unlink(*arguments, **more)

    monkeypatch.setattr(os, "unlink", swap_then_unlink)
    with pytest.raises(HubError, match="behind a link"):
        removal.execute()
    assert contents(own) == before


def test_without_descriptors_the_way_is_looked_at(access: Access, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr(safe_remove, "_BY_DESCRIPTOR", False)
    repo = access.cache / "models--org--b"
    models = [model for model in scan() if model.name == "org/b"]
    plan_removal([model for model in models if model.precision == "Q8_0"]).execute()
    removal = plan_removal([model for model in scan() if model.name == "org/b"])
    move_out(repo / f"snapshots/{COMMIT}", own)
    before = contents(own)
    with pytest.raises(HubError, match="behind a link"):
        removal.execute()
    assert contents(own) == before
    (repo / f"snapshots/{COMMIT}").unlink()
    (own / "moved").rename(repo / f"snapshots/{COMMIT}")
    removal.execute()
    assert not repo.exists()


def test_a_download_writes_nothing_behind_a_link(access: Access, own: Path) -> None:
    """A revision's folder that is a link to somebody's own: its files would be replaced."""
    repo = access.cache / "models--org--b"
    move_out(repo / f"snapshots/{COMMIT}", own)
    (own / "moved/b-Q8_0.gguf").unlink()
    (own / "moved/b-Q8_0.gguf").write_text("precious")
    before = contents(own)
    http = Http(access)
    listed = read_repo(http, "org/b")
    with pytest.raises(HubError, match="behind a link"):
        download(http, listed, listed.files)
    assert contents(own) == before


def test_links_that_lead_outside_are_named(access: Access, own: Path) -> None:
    point(access.cache / f"models--org--b/snapshots/{COMMIT}/config.json", own / "thesis.docx")
    removal = plan_removal([model for model in scan() if model.name == "org/b"])
    assert [str(own / "thesis.docx") in line for line in removal.left] == [True]
    assert removal.freed == 40_000 + 2, "the blob that config.json led to goes with the repository"


def test_a_cache_behind_a_link_is_the_users_own_choice(
    access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(access.cache)
    monkeypatch.setenv("HF_HUB_CACHE", str(linked))
    plan_removal([model for model in scan() if model.name == "org/b"]).execute()
    assert not (access.cache / "models--org--b").exists()


def test_a_blob_that_another_repository_links_to_stays(access: Access) -> None:
    blob = (access.cache / f"models--org--b/snapshots/{COMMIT}/b-Q8_0.gguf").resolve()
    borrower = access.cache / f"models--org--other/snapshots/{COMMIT}/borrowed-Q8_0.gguf"
    borrower.symlink_to(blob)
    removal = plan_removal([model for model in scan() if model.name == "org/b"])
    assert removal.freed == 20_002
    removal.execute()
    assert borrower.read_bytes() == DATA["q8"]


def test_a_blob_that_gets_a_new_name_meanwhile_stays(access: Access) -> None:
    models = [model for model in scan() if model.name == "org/b"]
    removal = plan_removal(models)
    new = access.cache / f"models--org--b/snapshots/{'e' * 40}/new-Q8_0.gguf"
    new.parent.mkdir()
    new.symlink_to(f"../../blobs/{models[0].path.resolve().name}")
    data = new.read_bytes()
    removal.execute()
    assert new.read_bytes() == data


def test_hard_links_and_copies_instead_of_links(access: Access) -> None:
    """As on systems where not everybody may make links."""
    snapshot_folder = access.cache / f"models--org--b/snapshots/{COMMIT}"
    for path in snapshot_folder.iterdir():
        blob = path.resolve()
        path.unlink()
        if "Q8" in path.name:
            os.link(blob, path)
        else:
            path.write_bytes(blob.read_bytes())
            blob.unlink()
    (snapshot_folder / "my-notes.txt").write_text("precious")
    removal = plan_removal([resolve("org/b", "Q8_0")])
    assert removal.freed == 20_000
    removal.execute()
    assert not (access.cache / "models--org--b/blobs").exists()
    removal = plan_removal([resolve("org/b")])
    assert removal.freed == 20_002
    assert [line.partition(" stays")[0] for line in removal.left] == [str(snapshot_folder / "my-notes.txt")]
    removal.execute()
    assert [path for path in (access.cache / "models--org--b").rglob("*") if path.is_file()] == [
        snapshot_folder / "my-notes.txt"
    ]


def test_other_programs_leave_nothing_behind(access: Access) -> None:
    """huggingface_hub's own files: a revision's name, a file that is known to be missing, half a download."""
    repo = access.cache / "models--org--b"
    (repo / f".no_exist/{COMMIT}").mkdir(parents=True)
    (repo / f".no_exist/{COMMIT}/adapter_config.json").touch()
    (repo / "refs/pr").mkdir()
    (repo / "refs/pr/1").write_text(COMMIT)
    half = repo / f"blobs/{'e' * 64}.incomplete"
    half.write_bytes(bytes(1000))
    models = [model for model in scan() if model.name == "org/b"]
    assert plan_removal(models).freed == 40_002, "somebody may still write it"
    os.utime(half, (0, 0))
    removal = plan_removal(models)
    assert removal.freed == 41_002
    removal.execute()
    assert not repo.exists()


def test_a_file_of_ones_own_in_a_model_folder_stays(home: Path) -> None:
    folder = home / "models/mine"
    (folder / "pictures").mkdir(parents=True)
    own = {"my-notes.txt", "adapter.safetensors", "train.py"}
    parts = {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)} | {"extra.safetensors"}
    index = {"weight_map": {"a": "extra.safetensors", "b": "../../outside.safetensors", "c": 7}}
    for name in own | parts | {"tokenizer.json", "merges.txt"}:
        (folder / name).write_bytes(b"x" * 100)
    (folder / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    removal = plan_removal([resolve("mine")])
    assert {path.name for path in removal.files} == parts | {
        "tokenizer.json",
        "merges.txt",
        "config.json",
        "model.safetensors.index.json",
    }
    assert sorted(Path(line.partition(" stays")[0]).name for line in removal.left) == sorted({*own, "pictures"})
    removal.execute()
    assert {path.name for path in folder.iterdir()} == {*own, "pictures"}


def test_a_folder_with_nothing_but_a_model_goes(home: Path) -> None:
    folder = home / "models/org/mine"
    folder.mkdir(parents=True)
    (folder / "weights.safetensors").write_bytes(b"x" * 100)
    (folder / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    removal = plan_removal([resolve("mine")])
    assert (removal.freed, removal.left) == (100 + len('{"dtype": "bfloat16"}'), ())
    removal.execute()
    assert list((home / "models").iterdir()) == []


@pytest.mark.parametrize("source", ["builtin", "path", "ollama", "lmstudio"])
def test_models_of_other_programs_stay(source: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"x")
    with pytest.raises(UsageError, match="stays") as caught:
        plan_removal([StoredModel("x", "Q8_0", path, 1, "gguf", source)])  # type: ignore[arg-type]
    assert caught.value.hint
    assert path.exists()


def test_unfinished_downloads_can_be_removed(access: Access, tmp_path: Path) -> None:
    blobs = access.cache / "models--org--b/blobs"
    name = f"{'a' * 64}.part1.owner1"
    head = {"repo": "org/b", "file": "x", "size": 5 << 20, "host": "gone", "pid": 1, "started": 0}
    journal = blobs / f"{name}.localrun-journal"
    journal.write_text(json.dumps(head) + "\n0 00000000\n")
    (blobs / f"{'a' * 64}.part1.localrun-part").write_bytes(b"x")
    assert plan_partials("org/b").freed == 0
    os.utime(journal, (0, 0))
    elsewhere = tmp_path / "elsewhere"
    blobs.rename(elsewhere)
    blobs.symlink_to(elsewhere)
    for remove in (lambda: plan_partials("org/b"), lambda: discard(journal)):
        with pytest.raises(HubError, match="behind a link"):
            remove()
    blobs.unlink()
    elsewhere.rename(blobs)
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
