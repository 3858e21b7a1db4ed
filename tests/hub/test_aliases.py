"""A file that has two names in the Hugging Face cache: listed once, removed whole, and still found by either name."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localrun.cli.app import run_command_line
from localrun.hub.disk.aliases import with_aliases, without_aliases
from localrun.hub.disk.library import mark_used, scan
from localrun.hub.disk.removal import plan_removal
from localrun.hub.disk.stored import StoredModel
from localrun.hub.resolve import resolve, resolve_all

OLD, NEW = "a" * 40, "b" * 40
Link = Callable[[Path, Path], None]


def symlink(blob: Path, path: Path) -> None:
    path.symlink_to(os.path.relpath(blob, path.parent))


def hardlink(blob: Path, path: Path) -> None:
    os.link(blob, path)


class Cached:
    """A repository of the Hugging Face cache, filled by hand; `main` is the newer of two revisions."""

    def __init__(self, home: Path, link: Link = symlink, name: str = "org/b") -> None:
        self.folder = home / "huggingface/hub" / f"models--{name.replace('/', '--')}"
        self.link = link
        (self.folder / "refs").mkdir(parents=True)
        (self.folder / "refs/main").write_text(NEW)

    def put(self, revision: str, name: str, content: bytes) -> Path:
        blob = self.folder / "blobs" / f"{hash(content) & (1 << 64) - 1:064x}"
        path = self.folder / "snapshots" / revision / name
        for place in (blob, path):
            place.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        self.link(blob, path)
        return path


def of_hub(models: list[StoredModel]) -> list[StoredModel]:
    return [model for model in models if model.source == "hub"]


def shown() -> list[str]:
    return [str(model.path.relative_to(model.path.parents[1])) for model in of_hub(without_aliases(scan()))]


@pytest.mark.parametrize("link", [symlink, hardlink])
def test_a_renamed_file_is_listed_once_by_its_newest_name(
    home: Path, link: Link, capsys: pytest.CaptureFixture[str]
) -> None:
    cached = Cached(home, link)
    before = cached.put(OLD, "b-Q4_K.gguf", b"weights")
    after = cached.put(NEW, "b-Q4_K_M.gguf", b"weights")
    mark_used(before)
    assert {model.path for model in of_hub(scan())} == {before, after}
    (one,) = of_hub(without_aliases(scan()))
    assert one.path == after
    assert one.last_used is not None
    assert run_command_line(["list", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["source"] == "hub"]
    assert [row["path"] for row in rows] == [str(after)]
    assert resolve("org/b:Q4_K").path == before
    assert resolve("org/b:Q4_K_M").path == after


def test_other_bytes_are_another_model_whatever_they_are_called(home: Path) -> None:
    cached = Cached(home)
    cached.put(OLD, "b-Q8_0.gguf", b"weights")
    cached.put(NEW, "better-Q8_0.gguf", b"better!")
    Cached(home, name="org/copy").put(NEW, "b-Q8_0.gguf", b"weights")
    assert len(shown()) == 3


def test_files_of_one_name_in_two_folders_are_two_models(home: Path) -> None:
    cached = Cached(home)
    cached.put(NEW, "plain/b-Q8_0.gguf", b"weights")
    cached.put(NEW, "tuned/b-Q8_0.gguf", b"better!")
    assert shown() == ["plain/b-Q8_0.gguf", "tuned/b-Q8_0.gguf"]


def test_a_split_model_is_the_same_only_if_every_part_is(home: Path) -> None:
    cached = Cached(home)
    for revision, name, second in ((OLD, "old", b"2"), (NEW, "new", b"2"), (NEW, "other", b"3")):
        cached.put(revision, f"{name}-Q8_0-00001-of-00002.gguf", b"1")
        cached.put(revision, f"{name}-Q8_0-00002-of-00002.gguf", second)
    assert shown() == [f"{NEW}/new-Q8_0-00001-of-00002.gguf", f"{NEW}/other-Q8_0-00001-of-00002.gguf"]


def test_a_folder_whose_settings_changed_holds_the_same_weights(home: Path) -> None:
    cached = Cached(home)
    for revision, dtype in ((OLD, "float16"), (NEW, "bfloat16")):
        cached.put(revision, "model.safetensors", b"weights")
        cached.put(revision, "config.json", json.dumps({"dtype": dtype}).encode())
    cached.put(NEW, "b-BF16.gguf", b"the same model as GGUF")
    assert [(model.format, model.precision) for model in of_hub(without_aliases(scan()))] == [
        ("safetensors", "bf16"),
        ("gguf", "BF16"),
    ]


def test_removing_a_precision_removes_all_aliases(home: Path) -> None:
    cached = Cached(home)
    names = [cached.put(OLD, "b-Q8_0.gguf", b"weights"), cached.put(NEW, "new-Q8_0.gguf", b"weights")]
    kept = cached.put(NEW, "b-Q4_0.gguf", b"small")
    removal = plan_removal(resolve_all("org/b:Q8_0"))
    assert set(removal.files) == set(names)
    assert removal.freed == len(b"weights")
    removal.execute()
    assert [model.path for model in of_hub(scan())] == [kept]
    assert len(list((cached.folder / "blobs").iterdir())) == 1


def test_a_model_that_went_while_it_was_listed_has_no_aliases(home: Path) -> None:
    cached = Cached(home)
    first, second = cached.put(OLD, "b-Q8_0.gguf", b"weights"), cached.put(NEW, "new-Q8_0.gguf", b"weights")
    models = of_hub(scan())
    first.unlink()
    assert {model.path for model in without_aliases(models)} == {first, second}
    (gone,) = [model for model in models if model.path == first]
    assert with_aliases(gone, models) == [gone]
