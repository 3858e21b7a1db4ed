"""Files that lie beside a model and are none: never taken for it, in a repository, a folder, a list or by a name."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np
import pytest
from localrun_testing.fake_hub import FakeHub
from localrun_testing.stub_gguf import stub_gguf

from localrun.base.errors import LocalrunError, ModelFileError, NotFoundError
from localrun.base.request import LoadOptions
from localrun.engine.opened_model import open_model
from localrun.formats.detect import open_model_file
from localrun.formats.helper_files import (
    ADAPTER,
    APPLE_DOUBLE,
    CONTROL_VECTOR,
    DRAFT,
    IMATRIX,
    PROJECTOR,
    VOCODER,
    declared_helper,
    helper_beside_model,
    named_helper,
)
from localrun.hub.compatibility import require_runnable
from localrun.hub.disk.library import scan
from localrun.hub.disk.model_files import files_of_folder
from localrun.hub.disk.obstacles import stored_obstacle
from localrun.hub.disk.removal import plan_removal
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.remote.variants import choose_variant, variants_of
from localrun.hub.resolve import resolve, resolve_all

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
Put = Callable[[Path], Path]


def put_model(path: Path) -> Path:
    """A whole model, by its headers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stub_gguf(path.parent, path.name)
    return path


def put_small_model(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    stub_gguf(path.parent, path.name, rows=32, layers=1)
    return path


def says(arch: str, more: Mapping[str, str | int] = MappingProxyType({})) -> Put:
    """A file that says that it is something else."""

    def put(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = gguf.GGUFWriter(path, arch)
        for key, value in more.items():
            writer.add_string(key, value) if isinstance(value, str) else writer.add_uint32(key, value)
        writer.add_tensor("some.weight", np.zeros((4, 32), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return put


def put_apple_double(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X        " + bytes(4064))
    return path


MODEL = "gem-UD-Q4_K_XL.gguf"
BESIDE: dict[str, tuple[str, Put]] = {
    "projector": ("gem.mmproj-q8_0.gguf", says("clip", {"general.type": "mmproj"})),
    "projector under another name": ("gem-vision-Q4_K_M.gguf", says("clip", {"clip.projector_type": "gemma3"})),
    "imatrix": ("imatrix.gguf", says("", {"general.type": "imatrix"})),
    "imatrix in capitals": ("GEM-IMATRIX.GGUF", says("", {"imatrix.chunk_count": 3})),
    "adapter": ("gem-style-Q4_K_M.gguf", says("llama", {"general.type": "adapter", "adapter.type": "lora"})),
    "control vector": ("gem-happy-Q8_0.gguf", says("controlvector")),
    "assistant": ("gem-Q4_0.gguf", says("gemma4-assistant")),
    "eagle": ("gem-next-Q8_0.gguf", says("eagle3")),
    "model that drafts": ("mtp-gem-Q8_0.gguf", put_small_model),
    "another that drafts": ("gem-0.6b-draft-Q4_K_M.gguf", put_small_model),
    "what macOS notes": ("._gem-Q4_K_M.gguf", put_apple_double),
}


@pytest.mark.parametrize("place", ["repository", "lm studio", "folder"])
@pytest.mark.parametrize("kind", BESIDE)
def test_the_model_is_taken_and_not_what_lies_beside_it(
    home: Path, place: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.expanduser", lambda path: str(path).replace("~", str(home)))
    folder = {
        "repository": home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa",
        "lm studio": home / ".lmstudio/models/acme/gem-GGUF",
        "folder": home / "elsewhere/gem-GGUF",
    }[place]
    name = str(folder) if place == "folder" else "acme/gem-GGUF"
    put_model(folder / MODEL)
    file, put = BESIDE[kind]
    helper = put(folder / file)
    assert resolve(name).path == folder / MODEL
    assert resolve(f"{name}:UD-Q4_K_XL").path == resolve(f"{name}:q4_k_xl").path == folder / MODEL
    for precision in ("Q8_0", "Q4_K_M", "Q4_0"):
        with pytest.raises(NotFoundError, match="not on disk as"):
            resolve(f"{name}:{precision}")
    listed = [model.path.name for model in scan() if model.source != "builtin"]
    assert listed == ([] if place == "folder" else [MODEL])
    assert [model.path.name for model in resolve_all(name)] == [MODEL]
    assert open_model_file(folder).path == folder / MODEL
    assert resolve(f"{name}:{file}").path == resolve(str(helper)).path == helper  # by its own name it is meant


@pytest.mark.parametrize("kind", [kind for kind, (_, put) in BESIDE.items() if put is not put_small_model])
def test_a_helper_by_its_exact_path_is_said_to_be_one(tmp_path: Path, kind: str) -> None:
    file, put = BESIDE[kind]
    path = put(tmp_path / file)
    with pytest.raises(ModelFileError, match=r"this is (a |an |what macOS)") as caught:
        open_model(LoadOptions(path=path))
    assert "tokenizer" not in caught.value.message
    assert caught.value.hint
    assert stored_obstacle(resolve(str(path)))


def test_a_draft_beside_safetensors_is_a_helper(home: Path, serve: Serve, access_to: AccessTo) -> None:
    folder = home / "huggingface/hub/models--acme--gem/snapshots/aaa"
    draft = put_small_model(folder / "mtp-gem-Q8_0.gguf")
    (folder / "config.json").write_text('{"dtype": "bfloat16"}')
    (folder / "model.safetensors").write_bytes(b"x" * 5000)
    assert resolve("acme/gem").path == resolve(str(folder)).path == folder
    assert [model.path for model in scan() if model.source == "hub"] == [folder]
    assert resolve("acme/gem:mtp-gem-Q8_0.gguf").path == draft
    http = Http(access_to(serve({"acme/gem": {path.name: path.read_bytes() for path in folder.iterdir()}})))
    repo = read_repo(http, "acme/gem")
    assert [variant.format for variant in variants_of(repo)] == ["safetensors"]
    assert choose_variant(repo.name, variants_of(repo, draft.name), draft.name).precision == "Q8_0"


def test_a_draft_model_is_recognised_by_its_folder(home: Path, serve: Serve, access_to: AccessTo) -> None:
    folder = home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa"
    put_model(folder / MODEL)
    put_small_model(folder / "MTP/gem-Q8_0.gguf")
    assert [model.path.name for model in scan() if model.source == "hub"] == [MODEL]
    assert resolve("acme/gem-GGUF").path == folder / MODEL
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.gguf")}
    repo = read_repo(Http(access_to(serve({"acme/gem-GGUF": files}))), "acme/gem-GGUF")
    assert [variant.precision for variant in variants_of(repo)] == ["UD-Q4_K_XL"]


def test_files_called_by_no_more_than_a_precision_are_one_model(home: Path) -> None:
    folder = home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa"
    for precision in ("Q4_0", "Q8_0"):
        put_model(folder / f"{precision}.gguf")
        assert resolve(f"acme/gem-GGUF:{precision}").path == folder / f"{precision}.gguf"
    assert {model.name for model in scan() if model.source == "hub"} == {"acme/gem-GGUF"}


def test_a_draft_alone_is_a_model(home: Path) -> None:
    folder = home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa"
    draft = put_small_model(folder / "mtp-gem-Q8_0.gguf")
    assert resolve("acme/gem-GGUF").path == draft
    put_model(folder / MODEL)
    assert resolve("acme/gem-GGUF").path == folder / MODEL


def test_a_repository_of_drafts_holds_models(home: Path) -> None:
    folder = home / "huggingface/hub/models--acme--gem-mtp-GGUF/snapshots/aaa"
    put_small_model(folder / "gem-mtp-Q8_0.gguf")
    put_small_model(folder / "gem-mtp-Q4_0.gguf")
    names = {model.name for model in scan() if model.source == "hub"}
    assert (names, len(resolve_all("acme/gem-mtp-GGUF"))) == ({"acme/gem-mtp-GGUF"}, 2)


def test_a_second_model_of_a_repository_goes_by_both_names(home: Path) -> None:
    folder = home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa"
    main = put_model(folder / MODEL)
    second = put_small_model(folder / "other-Q8_0.gguf")
    found = {model.name: model.path for model in scan() if model.source == "hub"}
    assert found == {"acme/gem-GGUF": main, "acme/gem-GGUF:other": second}
    assert resolve("acme/gem-GGUF").path == main
    for name in ("acme/gem-GGUF:other", "acme/gem-GGUF:other:Q8_0", "acme/gem-GGUF:other-Q8_0.gguf"):
        assert resolve(name).path == second
    with pytest.raises(NotFoundError) as caught:
        resolve("acme/gem-GGUF:Q8_0")
    assert "other-Q8_0.gguf" in caught.value.hint
    plan_removal(resolve_all("acme/gem-GGUF:other")).execute()
    assert (main.exists(), second.exists()) == (True, False)


def test_helpers_are_removed_with_their_model(home: Path) -> None:
    folder = home / "huggingface/hub/models--acme--gem-GGUF/snapshots/aaa"
    put_model(folder / MODEL)
    for file, put in BESIDE.values():
        put(folder / file)
    plan_removal(resolve_all("acme/gem-GGUF")).execute()
    assert not folder.exists()


def test_files_that_are_models_whatever_their_names(home: Path) -> None:
    """A name says something only where the file does not, or where another model lies beside it."""
    for name in ("gem-mmproj-Q8_0.gguf", "imatrix-gem-Q8_0.gguf", "my-lora-Q8_0.gguf"):
        put_model(home / f"models/{name}")
    assert len([model for model in scan() if model.source == "models"]) == 3


@pytest.mark.parametrize("kind", BESIDE)
def test_a_helper_is_not_downloaded_for_a_model(serve: Serve, access_to: AccessTo, tmp_path: Path, kind: str) -> None:
    file, put = BESIDE[kind]
    contents = {path.name: path.read_bytes() for path in (put_model(tmp_path / MODEL), put(tmp_path / file))}
    http = Http(access_to(serve({"acme/gem-GGUF": contents})))
    repo = read_repo(http, "acme/gem-GGUF")
    if named_helper(file) or helper_beside_model(file, repo.name):
        assert [variant.precision for variant in variants_of(repo)] == ["UD-Q4_K_XL"]

    def ask_for_it() -> None:
        require_runnable(http, repo, choose_variant(repo.name, variants_of(repo, file), file).files)

    if put is put_small_model:
        ask_for_it()
    else:
        with pytest.raises(LocalrunError, match=r" is (a |an |what macOS).*, not a model"):
            ask_for_it()


@pytest.mark.parametrize(
    ("name", "helper"),
    [
        ("mmproj-gem-F16.gguf", PROJECTOR),
        ("gem.MMPROJ.gguf", PROJECTOR),
        ("imatrix_unsloth.gguf", IMATRIX),
        ("gem.imatrix.gguf", IMATRIX),
        ("gem-BF16-imatrix.gguf", IMATRIX),
        ("gem-Q4_K_M-imatrix.gguf", ""),
        ("gem-imatrix-IQ2_M.gguf", ""),
        ("._gem-Q4_0.gguf", APPLE_DOUBLE),
        ("__MACOSX/gem-Q4_0.gguf", APPLE_DOUBLE),
        ("mtp-gem-Q4_0.gguf", ""),
    ],
)
def test_names_that_are_no_models(name: str, helper: str) -> None:
    assert named_helper(name) == helper


@pytest.mark.parametrize(
    ("name", "repo", "helper"),
    [
        ("mtp-gem-Q8_0.gguf", "acme/gem", DRAFT),
        ("gem_DFlash-Q8_0.gguf", "acme/gem", DRAFT),
        ("gem-eagle3.gguf", "acme/gem", DRAFT),
        ("gem-it-assistant-Q8_0.gguf", "acme/gem", DRAFT),
        ("gem-it-assistant-Q8_0.gguf", "acme/gem-Assistant", ""),
        ("gem-lora-f16.gguf", "acme/gem", ADAPTER),
        ("gem-control-vector.gguf", "acme/gem", CONTROL_VECTOR),
        ("WavTokenizer-Large.gguf", "acme/outetts", VOCODER),
        ("drafty-assistants-explorative.gguf", "acme/gem", ""),
    ],
)
def test_names_that_are_no_models_beside_one(name: str, repo: str, helper: str) -> None:
    assert helper_beside_model(name, repo) == helper


@pytest.mark.parametrize(
    "values",
    [{}, {"general.architecture": "gemma3"}, {"general.type": "model"}, {"general.type": 7, "general.architecture": 7}],
)
def test_files_without_a_helper_name_are_models(values: dict[str, Any]) -> None:
    assert declared_helper(values) == ""


def test_split_models_and_capitals(home: Path) -> None:
    """Files of Windows are found by their names, parts too."""
    whole = put_model(home / "models/Tiny-Q4_K_M.GGUF")
    parts = [home / f"models/big-Q8_0-imat-0000{number}-of-00002.GGUF" for number in (1, 2)]
    for part in parts:
        shutil.copyfile(whole, part)
    found = {model.name: (model.precision, model.path) for model in scan() if model.source == "models"}
    assert found == {"tiny": ("Q4_K_M", whole), "big": ("Q8_0", parts[0])}
    assert resolve("tiny-q4_k_m.gguf").path == resolve("tiny").path == whole


def test_more_chat_templates_are_a_part_of_the_model(tmp_path: Path) -> None:
    names = ["config.json", "model.safetensors", "additional_chat_templates/tool_use.jinja", "other/rag.jinja"]
    files = tuple(RemoteFile(name, 10, "0" * 40) for name in names)
    variant = variants_of(RemoteRepo("org/m", "0" * 40, False, "", files))[0]
    assert [file.path for file in variant.files] == [names[1], names[2], names[0]]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert files_of_folder(tmp_path) == [tmp_path / name for name in (names[2], *names[:2])]
