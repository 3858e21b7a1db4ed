"""What is on disk, from folders made up here. Names and sizes matter; contents do not, so files are a few bytes."""

import json
import os
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

from localrun.base.errors import ModelFileError, UsageError
from localrun.base.settings import write_setting
from localrun.hub.catalogue import read_catalogue
from localrun.hub.disk import library
from localrun.hub.disk.library import mark_used, scan
from localrun.hub.disk.removal import plan_removal
from localrun.hub.resolve import resolve


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"G" * size)
    return path


def rows() -> list[tuple[str, str, int, str, str]]:
    return [(m.name, m.precision, m.bytes, m.format, m.source) for m in scan() if m.source != "builtin"]


def test_the_builtin_model_is_always_there() -> None:
    names = [(model.name, model.precision) for model in scan()]
    assert names == [("builtin", precision) for precision in read_catalogue()["builtin"]["files"]]


def test_models_folder(home: Path) -> None:
    put(home / "models/tiny-Q8_0.gguf", 5)
    put(home / "models/org/repo/tiny-Q4_0.gguf", 4)
    put(home / "models/notes.txt")
    put(home / "models/mmproj-tiny-F16.gguf")
    put(home / "models/.partial/x-Q8_0.gguf")
    assert rows() == [("tiny", "Q4_0", 4, "gguf", "models"), ("tiny", "Q8_0", 5, "gguf", "models")]


def test_split_models_are_one_row_and_incomplete_ones_none(home: Path) -> None:
    for number in (1, 2, 3):
        put(home / f"models/big-Q4_K_M-{number:05d}-of-00003.gguf", number)
    put(home / "models/lost-Q4_K_M-00001-of-00002.gguf")
    assert rows() == [("big", "Q4_K_M", 6, "gguf", "models")]


BITSANDBYTES = {"quant_method": "bitsandbytes", "bnb_4bit_quant_type": "nf4"}
W4A16 = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
}


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({"dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"torch_dtype": "float16", "quantization_config": {"quant_method": "gptq", "bits": 4}}, "gptq int4 rows"),
        ({"quantization": {"bits": 4, "group_size": 64}, "quantization_config": {"bits": 4}}, "int4 g64"),
        ({"quantization": {"bits": 4, "group_size": 16, "mode": "nvfp4"}}, "nvfp4"),
        ({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}}, "fp8"),
        ({"dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, "awq int4 g128"),
        ({"quantization_config": W4A16}, "int4 g128"),
        ({"quantization_config": BITSANDBYTES | {"load_in_4bit": True}}, "nf4"),
        ({"quantization_config": BITSANDBYTES | {"load_in_8bit": True}}, "llm.int8"),
        ({"architectures": []}, ""),
    ],
)
def test_safetensors_folders(home: Path, config: dict[str, object], precision: str) -> None:
    put(home / "models/Small/model-00001-of-00002.safetensors", 3)
    put(home / "models/Small/model-00002-of-00002.safetensors", 4)
    (home / "models/Small/config.json").write_text(json.dumps(config))
    assert rows() == [("small", precision, 7, "safetensors", "models")]


def test_a_folder_of_lm_studio_reached_by_two_ways_is_listed_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = home / "person"
    monkeypatch.setattr("os.path.expanduser", lambda path: str(path).replace("~", str(person)))
    put(person / ".lmstudio/models/org/repo/small-Q8_0.gguf", 8)
    (person / ".cache").mkdir()
    (person / ".cache/lm-studio").symlink_to(person / ".lmstudio")
    assert [row[:3] for row in rows()] == [("org/repo", "Q8_0", 8)]


def test_hub_cache_takes_each_file_once_and_main_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = home / "huggingface/hub/models--Org--Some-Model"
    for revision in ("aaa", "bbb"):
        put(repo / f"snapshots/{revision}/Some-Model-Q8_0.gguf", 8)
    put(repo / "snapshots/aaa/Some-Model-Q4_0.gguf", 4)
    (repo / "snapshots/bbb/broken-Q2_K.gguf").symlink_to(repo / "blobs/gone")
    put(repo / "refs/main").write_text("bbb\n")
    put(home / "huggingface/hub/datasets--Org--Data/snapshots/aaa/x-Q8_0.gguf")
    assert rows() == [("Org/Some-Model", "Q4_0", 4, "gguf", "hub"), ("Org/Some-Model", "Q8_0", 8, "gguf", "hub")]
    assert [model.path.parent.name for model in scan() if model.precision == "Q8_0" and model.source == "hub"] == [
        "bbb"
    ]

    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HF_HUB_CACHE", str(home / "nowhere"))
    assert rows() == []


def test_a_name_that_does_not_say_the_precision_is_looked_up_inside(home: Path) -> None:
    path = home / "models/unnamed.gguf"
    path.parent.mkdir(parents=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("big", np.zeros((4, 64), np.float16))
    writer.add_tensor("small", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    put(home / "models/rubbish.gguf")
    assert [row[:2] for row in rows()] == [("rubbish", ""), ("unnamed", "F16")]


def test_a_file_is_looked_into_once_until_it_changes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def unreadable(path: Path, ahead: bool) -> None:
        read.append(path)
        raise ModelFileError("BAD", "this is none")

    monkeypatch.setattr("localrun.formats.gguf.open_gguf", unreadable)
    path = home / "models" / "mine.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    for _ in range(2):
        assert "mine" in [model.name for model in scan()]
    path.write_bytes(b"GGUF and more")
    scan()
    assert read == [path, path]


def test_last_used_is_remembered(home: Path) -> None:
    path = put(home / "models/tiny-Q8_0.gguf")
    before = time.time()
    mark_used(path)
    mark_used(path)
    (used,) = [model.last_used for model in scan() if model.path == path]
    assert used is not None
    assert before - 1 <= used <= time.time() + 1
    for text in ("[1]", "{", '{"x": "y"}', "\udcff"):
        (home / "cache" / library._USED_FILE).write_text(text, errors="surrogateescape")
        assert rows() == [("tiny", "Q8_0", 10, "gguf", "models")]


def test_models_used_by_path_are_listed_while_their_file_exists(home: Path, tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere" / "mine-Q4_0.gguf")
    put(tmp_path / "elsewhere" / "other-Q4_0.gguf")
    known = put(home / "models/tiny-Q8_0.gguf")
    (tmp_path / "link.gguf").symlink_to(known)
    before = rows()
    for path in (elsewhere, known, tmp_path / "link.gguf"):
        mark_used(path)
    (found,) = [model for model in scan() if model.path == elsewhere]
    assert (found.name, found.source, found.last_used is not None) == ("mine", "path", True)
    assert len(rows()) == len(before) + 1
    assert resolve("mine").path == elsewhere
    with pytest.raises(UsageError, match="a file of yours"):
        plan_removal([found])
    elsewhere.unlink()
    assert rows() == before


def test_folders_of_the_setting_are_searched_too(home: Path, tmp_path: Path) -> None:
    known = put(home / "models/tiny-Q8_0.gguf")
    before = rows()
    first, second = tmp_path / "first", tmp_path / "second"
    put(first / "deep/er/mine-Q4_0.gguf", 4)
    put(second / "other-Q6_K.gguf", 6)
    (second / "again-Q8_0.gguf").symlink_to(known)
    write_setting("folders", os.pathsep.join(map(str, (first, second, tmp_path / "gone", first))))
    assert [row for row in rows() if row not in before] == [
        ("mine", "Q4_0", 4, "gguf", "path"),
        ("other", "Q6_K", 6, "gguf", "path"),
    ]
    assert len(rows()) == len(before) + 2
    assert resolve("mine").path == first / "deep/er/mine-Q4_0.gguf"
    (home / "config.toml").write_text('seed = "red"\n')
    assert rows() == before, "what is wrong with the settings is said by what loads a model"
    for wrong in ("models", f"/a{os.pathsep}b", ""):
        with pytest.raises(UsageError):
            write_setting("folders", wrong)


def test_an_unreadable_home_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home / "models/tiny-Q8_0.gguf")
    monkeypatch.setenv("LOCALRUN_HOME", str(home / "models/tiny-Q8_0.gguf"))
    mark_used(home)
    assert rows() == []


def test_mlx_folders_of_lm_studio_are_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = home / "person"
    monkeypatch.setattr("os.path.expanduser", lambda path: str(path).replace("~", str(person)))
    folder = person / ".lmstudio/models/mlx-community/Small-4bit"
    put(folder / "model.safetensors", 8)
    (folder / "config.json").write_text(json.dumps({"quantization": {"group_size": 64, "bits": 4}}))
    assert rows() == [("mlx-community/Small-4bit", "int4 g64", 8, "safetensors", "lmstudio")]
