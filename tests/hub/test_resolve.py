"""MODEL to path: the order of readings, the choice of a precision, and errors that name what there is."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from localrun_testing.stub_gguf import stub_gguf

from localrun.base.errors import NotFoundError, UsageError
from localrun.hub.disk.library import mark_used
from localrun.hub.resolve import resolve, resolve_all


@pytest.fixture
def models(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """tiny in two precisions and a split one in localrun's folder, one repository in the hub's cache."""
    monkeypatch.chdir(tmp_path)
    hub = "huggingface/hub/models--Org--Repo-GGUF/snapshots/a"
    for name in (
        *("models/tiny-Q8_0.gguf", "models/tiny-Q4_0.gguf", "models/other-Q3_K_S.gguf", "models/other-Q2_K.gguf"),
        *("models/big-F16-00001-of-00002.gguf", "models/big-F16-00002-of-00002.gguf"),
        *(f"{hub}/Repo-Q8_0.gguf", f"{hub}/Repo-Q4_K_M.gguf", f"{hub}/Repo-Q4_K_M-imat.gguf"),
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF" + b"x" * len(name))
    return home / "models"


@pytest.mark.parametrize(
    ("model", "file"),
    [
        ("tiny", "tiny-Q4_0.gguf"),
        ("TINY:q8_0", "tiny-Q8_0.gguf"),
        ("tiny-Q8_0.gguf", "tiny-Q8_0.gguf"),
        ("other", "other-Q2_K.gguf"),
        ("big", "big-F16-00001-of-00002.gguf"),
        ("big:fp16", "big-F16-00001-of-00002.gguf"),
        ("Org/Repo-GGUF", "Repo-Q4_K_M.gguf"),
        ("org/repo-gguf:Q8_0", "Repo-Q8_0.gguf"),
        ("repo-gguf:q8_0", "Repo-Q8_0.gguf"),
        ("repo-gguf:q4_k_m", "Repo-Q4_K_M.gguf"),
        ("org/repo-gguf:q4_k_m-imat", "Repo-Q4_K_M-imat.gguf"),
        ("hf.co/Org/Repo-GGUF:Repo-Q8_0.gguf", "Repo-Q8_0.gguf"),
        ("https://huggingface.co/Org/Repo-GGUF/resolve/main/Repo-Q8_0.gguf", "Repo-Q8_0.gguf"),
        ("builtin", "localrun-tiny.gguf"),
        ("Builtin:q8_0", "localrun-tiny.gguf"),
    ],
)
def test_a_name_resolves_to_the_file_on_disk(models: Path, model: str, file: str) -> None:
    assert resolve(model).path.name == file


@pytest.mark.parametrize("shown", ["relative", "absolute", "tilde"])
def test_paths_go_before_names(models: Path, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "tiny.gguf"
    path.write_bytes((models / "tiny-Q8_0.gguf").read_bytes())
    text = {"relative": "tiny.gguf", "absolute": str(path), "tilde": "~/tiny.gguf"}[shown]
    found = resolve(text)
    assert found.path.resolve() == path
    assert found.source == "path"


def test_any_shard_is_the_whole(models: Path) -> None:
    found = resolve(str(models / "big-F16-00002-of-00002.gguf"))
    assert found.path.name == "big-F16-00001-of-00002.gguf"
    assert found.bytes == sum(path.stat().st_size for path in models.glob("big*"))


def test_a_missing_shard_is_left_to_the_reader_to_explain(models: Path) -> None:
    (models / "big-F16-00001-of-00002.gguf").unlink()
    shard = models / "big-F16-00002-of-00002.gguf"
    assert resolve(str(shard)).path == shard


def test_a_folder_resolves_to_its_model(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    with pytest.raises(NotFoundError, match="no model in the folder"):
        resolve("checkpoint")
    (folder / "tokenizer.json").write_text("{}")
    assert resolve("./checkpoint").path.resolve() == folder
    (folder / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    (folder / "model.safetensors").write_bytes(b"x")
    for text in ("checkpoint", str(folder), str(folder / "model.safetensors"), str(folder / "config.json")):
        found = resolve(text)
        assert (found.path.resolve(), found.precision, found.format) == (folder, "bf16", "safetensors")
    shutil.copyfile(models / "other-Q2_K.gguf", folder / "other-Q2_K.gguf")
    assert resolve("checkpoint", "Q2_K").path.resolve() == folder / "other-Q2_K.gguf"
    assert resolve("checkpoint:q2_k").path.resolve() == folder / "other-Q2_K.gguf"


def test_a_folder_of_several_models_asks_for_one(tmp_path: Path) -> None:
    for name in ("one-Q8_0.gguf", "one-Q4_K_M.gguf", "other-Q4_0.gguf", "mmproj-one-F16.gguf", "one.imatrix.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(UsageError, match=r"holds 2 models: one-Q4_K_M\.gguf, other-Q4_0\.gguf$") as caught:
        resolve(str(tmp_path))
    assert caught.value.hint == f"name one of them, such as {tmp_path / 'one-Q4_K_M.gguf'}"
    with pytest.raises(UsageError):
        resolve_all(str(tmp_path))
    for wanted in ("Q4_0", "other-Q4_0.gguf"):  # which only one of them has
        assert (
            resolve(f"{tmp_path}:{wanted}").path.name == resolve(str(tmp_path), wanted).path.name == "other-Q4_0.gguf"
        )
    (tmp_path / "other-Q8_0.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError):
        resolve(f"{tmp_path}:Q8_0")
    assert {one.path.name for one in resolve_all(str(tmp_path / "other-Q8_0.gguf"))} == {"other-Q8_0.gguf"}


def test_a_folder_named_after_a_model_means_it(tmp_path: Path) -> None:
    folder = tmp_path / "Gem-3-1B-GGUF"
    folder.mkdir()
    for name in ("gem-3-1b-Q4_0.gguf", "gem-3-1b-Q8_0.gguf", "apple-Q4_K_M.gguf"):
        (folder / name).write_bytes(b"GGUF")
    assert {one.precision for one in resolve_all(str(folder))} == {"Q4_0", "Q8_0"}


def test_a_gguf_beside_safetensors_is_a_precision_of_them_or_another_model(tmp_path: Path) -> None:
    config = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes = {"num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 128, "vocab_size": 320}
    told = {"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 8192, "rms_norm_eps": 1e-6}
    (tmp_path / "model.safetensors").write_bytes(b"x")
    stub_gguf(tmp_path, "mine-F16.gguf")
    for n_layers in (2, 3):
        (tmp_path / "config.json").write_text(json.dumps({**config, **sizes, **told, "num_hidden_layers": n_layers}))
        if n_layers == 2:
            assert {one.format for one in resolve_all(str(tmp_path))} == {"gguf", "safetensors"}
            continue
        with pytest.raises(UsageError, match="holds 2 models: one in safetensors, mine-F16") as caught:
            resolve(str(tmp_path))
        named = caught.value.hint.removeprefix("name one of them, such as ")
        assert resolve(named).format == resolve(str(tmp_path / "model.safetensors")).format == "safetensors"


def test_a_folder_of_the_same_name_without_a_model_is_ignored(models: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    assert resolve("tiny").path.parent == models


def test_the_last_used_precision_is_taken_unless_one_is_asked_for(models: Path) -> None:
    mark_used(models / "tiny-Q8_0.gguf")
    assert resolve("tiny").precision == "Q8_0"
    assert resolve("tiny", "auto").precision == "Q8_0"
    assert resolve("tiny", "q4_0").precision == "Q4_0"


def test_a_file_whose_name_contains_a_colon_is_a_file(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "tiny:Q8_0.gguf"
    path.write_bytes(b"GGUF")
    assert resolve(str(path)).path == path
    assert resolve("tiny:Q8_0.gguf").path.resolve() == path


def test_a_model_of_the_catalogue_is_not_asked_back_for_by_its_own_name(models: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve("llama-3.3-70b")
    assert caught.value.hint == "`localrun pull llama-3.3-70b` downloads it"


@pytest.mark.parametrize(
    ("model", "says", "hints"),
    [
        ("tini", "no model tini", "did you mean tiny"),
        ("repo-guff", "no model", "Org/Repo-GGUF"),
        ("something-else", "no model something-else on disk", "builtin"),
        ("tiny:Q5_K_M", "tiny is not on disk as Q5_K_M", "Q4_0, Q8_0"),
        ("Org/Repo-GGUF:Q2_K", "not on disk as Q2_K", "Q4_K_M, Q8_0"),
        ("./missing.gguf", "no file or folder", "localrun list"),
        ("/nowhere/at/all", "no file or folder", "localrun list"),
        ("nobody/nothing", "no model nobody/nothing", ""),
        ("a\0b", "no model", ""),
        ("x" * 5000, "no model", ""),
        ("", "no model", ""),
        (":", "no model", ""),
    ],
)
def test_errors_name_what_there_is(models: Path, model: str, says: str, hints: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve(model)
    assert says in caught.value.message
    assert hints.lower() in caught.value.hint.lower()


def test_paths_that_are_not_models_are_named_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.bin").write_bytes(b"x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone.gguf").symlink_to("nowhere")
    (tmp_path / "device.gguf").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.gguf")
    os.mkfifo("pipe.gguf")
    for name, message, hint in (
        (
            "plain.bin",
            "is a file whose name does not end in .gguf",
            "write @plain.bin in a chat; if it is a model: ./plain.bin",
        ),
        ("loop", "is a broken link", "link"),
        ("./loop", "is a broken link", "link"),
        ("gone.gguf", "is a broken link", "link"),
        ("pipe.gguf", "is a pipe, not a file", "path"),
        ("./device.gguf", "is a device, not a file", "path"),
        ("socket.gguf", "is a socket, not a file", "path"),
        ("C:\\models\\x.gguf", "is a path of Windows", "/"),
        ("\\\\server\\x.gguf", "is a path of Windows", "/"),
    ):
        with pytest.raises(NotFoundError, match=message) as caught:
            resolve(name)
        assert hint in caught.value.hint
