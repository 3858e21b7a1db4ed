"""Good model folders: weights as the safetensors package sees them, configs and templates where they are looked for."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from localrun_testing.raw_files import Entry, safetensors_file

from localrun.base.errors import ModelFileError, NotFoundError
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors
from localrun.formats.source import TensorSource

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
}
WEIGHTS = {name: (torch.arange(24) - (0 if name == "U8" else 12)).to(dtype) for name, dtype in DTYPES.items()}
WEIGHTS |= {"matrix.weight": torch.randn(6, 4), "experts": torch.randn(2, 3, 4), "scalar": torch.tensor(7.0)}
SHARDS = {"model-00001-of-00002.safetensors": ["F32", "matrix.weight"], "model-00002-of-00002.safetensors": ["I8"]}


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def write_set(folder: Path, total_size: Any = None, extra: dict[str, Any] | None = None) -> int:
    """A sharded model. Returns the bytes of its tensors."""
    weight_map: dict[str, str] = {}
    n_bytes = 0
    for file, names in SHARDS.items():
        safetensors.torch.save_file({name: WEIGHTS[name] for name in names}, folder / file, {"format": "pt"})
        weight_map |= dict.fromkeys(names, file)
        n_bytes += sum(WEIGHTS[name].nbytes for name in names)
    metadata = {"total_size": n_bytes if total_size is None else total_size} | (extra or {})
    write_json(folder / "model.safetensors.index.json", {"metadata": metadata, "weight_map": weight_map})
    return n_bytes


def assert_same_weights(model: SafetensorsFolder, names: list[str]) -> None:
    assert set(model.tensors) == set(names)
    for name in names:
        info, expected = model.tensors[name], WEIGHTS[name]
        raw = model.read(name)
        assert info.shape == tuple(expected.shape)
        assert DTYPES[info.qtype] == expected.dtype
        assert torch.equal(torch.frombuffer(raw, dtype=expected.dtype).reshape(info.shape), expected)
        decoded = QUANT_TYPES[info.qtype].decode(torch.frombuffer(raw, dtype=torch.uint8), info.shape)
        assert torch.equal(decoded, expected.float())


def test_reads_what_safetensors_writes(tmp_path: Path) -> None:
    safetensors.torch.save_file(WEIGHTS, tmp_path / "model.safetensors", {"format": "pt"})
    write_json(tmp_path / "config.json", {"model_type": "llama", "rope_theta": 10000, "rope_scaling": None})
    model = open_safetensors(tmp_path)
    source: TensorSource = model
    assert source.format == "safetensors"
    assert_same_weights(model, list(WEIGHTS))
    assert model.path == model.folder == tmp_path
    assert model.metadata.get_str("model_type") == "llama"
    assert model.metadata.get_float("rope_theta") == 10000.0
    assert model.n_params == sum(weight.numel() for weight in WEIGHTS.values())
    rows = model.read("experts", 2, 3)
    assert torch.equal(torch.frombuffer(rows, dtype=torch.float32), WEIGHTS["experts"].flatten()[8:20])


def test_a_set_opens_by_folder_and_by_any_file(tmp_path: Path) -> None:
    write_set(tmp_path)
    for path in (tmp_path, *(tmp_path / name for name in SHARDS)):
        model = open_safetensors(str(path))
        assert_same_weights(model, ["F32", "matrix.weight", "I8"])
        assert [file.name for file in model.files] == list(SHARDS)
        assert model.folder == tmp_path


def test_a_set_of_links_opens(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    write_set(blobs)
    for path in list(blobs.iterdir()):
        (snapshot / path.name).symlink_to(path.rename(blobs / f"blob-{path.name}"))
    assert_same_weights(open_safetensors(snapshot), ["F32", "matrix.weight", "I8"])


def test_a_single_file_opens_with_its_folder(tmp_path: Path) -> None:
    safetensors.torch.save_file({"F32": WEIGHTS["F32"]}, tmp_path / "other.safetensors")
    write_json(tmp_path / "config.json", {"model_type": "qwen3"})
    for path in (tmp_path, tmp_path / "other.safetensors"):
        model = open_safetensors(path)
        assert_same_weights(model, ["F32"])
        assert model.metadata["model_type"] == "qwen3"


@pytest.mark.parametrize("beside", ["adapter_model", "consolidated", "weights.fp16"])
def test_an_adapter_or_a_second_copy_beside_the_weights_is_left_alone(beside: str, tmp_path: Path) -> None:
    safetensors.torch.save_file({"F32": WEIGHTS["F32"]}, tmp_path / "weights.safetensors")
    safetensors.torch.save_file({"I8": WEIGHTS["I8"]}, tmp_path / f"{beside}.safetensors")
    assert_same_weights(open_safetensors(tmp_path), ["F32"])


def test_model_safetensors_wins_over_a_leftover_index(tmp_path: Path) -> None:
    write_set(tmp_path)
    for name in SHARDS:
        (tmp_path / name).unlink()
    safetensors.torch.save_file({"I8": WEIGHTS["I8"]}, tmp_path / "model.safetensors")
    assert_same_weights(open_safetensors(tmp_path), ["I8"])


def test_several_files_without_an_index_are_refused(tmp_path: Path) -> None:
    write_set(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ModelFileError, match=r"no model\.safetensors\.index\.json") as caught:
        open_safetensors(tmp_path)
    assert caught.value.code == "MISSING_INDEX"


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {})
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelFileError, match="can run code") as caught:
        open_safetensors(tmp_path)
    assert caught.value.code == "PICKLE"


def test_a_tokenizer_alone_opens(tmp_path: Path) -> None:
    write_json(tmp_path / "tokenizer.json", {})
    model = open_safetensors(tmp_path)
    assert model.tokenizer_json == tmp_path / "tokenizer.json"
    assert (dict(model.tensors), dict(model.metadata), model.files) == ({}, {}, ())
    with pytest.raises(ModelFileError, match="'model_type' is missing") as caught:
        model.metadata.get_str("model_type")
    assert caught.value.code == "MISSING_KEY"


def test_an_empty_folder_has_no_model(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no model in the folder"):
        open_safetensors(tmp_path)
    with pytest.raises(NotFoundError, match="no such file"):
        open_safetensors(tmp_path / "missing")


def test_configs_are_found(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {"eos_token_id": [1, 2], "flag": True})
    write_json(tmp_path / "generation_config.json", {"temperature": 0.6})
    write_json(tmp_path / "tokenizer_config.json", {"bos_token": "<s>", "chat_template": None})
    model = open_safetensors(tmp_path)
    assert model.generation_config.get_float("temperature") == 0.6
    assert model.tokenizer_config.get_str("bos_token") == "<s>"
    assert (model.chat_templates, model.tokenizer_json) == ({}, None)
    assert model.metadata.get_array("eos_token_id", int) == [1, 2]


@pytest.mark.parametrize(
    ("in_config", "in_json", "in_jinja", "expected"),
    [
        ("config", None, None, {"default": "config"}),
        ("config", "json", None, {"default": "config"}),
        (None, "json", None, {"default": "json"}),
        ("config", "json", "jinja", {"default": "jinja"}),
        (None, None, "jinja ü", {"default": "jinja ü"}),
        (
            [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}],
            None,
            "jinja",
            {"default": "jinja"},
        ),
        ([{"name": "rag", "template": "b"}], None, None, {"rag": "b"}),
        ({"default": "a", "rag": "b"}, None, None, {"default": "a", "rag": "b"}),
    ],
)
def test_chat_templates(tmp_path: Path, in_config: Any, in_json: Any, in_jinja: Any, expected: dict[str, str]) -> None:
    write_json(tmp_path / "tokenizer.json", {})
    write_json(tmp_path / "tokenizer_config.json", {"chat_template": in_config})
    if in_json is not None:
        write_json(tmp_path / "chat_template.json", {"chat_template": in_json})
    if in_jinja is not None:
        (tmp_path / "chat_template.jinja").write_text(in_jinja, encoding="utf-8")
    model = open_safetensors(tmp_path)
    assert model.chat_templates == expected


def test_reading_a_file_that_was_replaced_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file({"a": Entry()}, bytes(8)))
    model = open_safetensors(tmp_path)
    path.write_bytes(safetensors_file({"a": Entry("U8", (8,), (0, 8))}, bytes(8)))
    with pytest.raises(ModelFileError, match="changed after it was opened"):
        model.read("a")


def test_many_tensors_open(tmp_path: Path) -> None:
    n = 50_000
    entries = {f"layers.{i}.weight": Entry("F16", (2, 2), (8 * i, 8 * i + 8)) for i in range(n)}
    (tmp_path / "model.safetensors").write_bytes(safetensors_file(entries, bytes(8 * n)))
    assert len(open_safetensors(tmp_path).tensors) == n
