"""Weights as they are held in memory: against a real load, and against the library's own sizes."""

import json
from math import prod
from pathlib import Path
from unittest.mock import Mock

import pytest
from localrun_testing.tiny_models import save

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import load_library
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.resources import resource
from localrun.fit.bytes import kv_bytes
from localrun.fit.shape import shape_of
from localrun.fit.weights import held, held_share
from localrun.formats.detect import open_model_file
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import load_model
from localrun.model.weight_sizes import held_bytes as loaded_bytes
from localrun.ops.kv import KV_CODECS
from localrun.ops.layouts import F32


def test_a_file_is_counted_as_a_load_holds_it() -> None:
    library = load_library()
    if library is None:
        pytest.skip("no native library")
    source = open_model_file(str(resource("builtin/localrun-tiny.gguf")))
    refs = read_weight_refs(source, read_config(source))
    assert held(source).nbytes == loaded_bytes(source, refs, CpuLayout(calls_of(library), 1).nbytes)


def test_a_config_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Mock(side_effect=read_config)
    monkeypatch.setattr("localrun.fit.weights.read_config", read)
    assert held(open_model_file(str(resource("builtin/localrun-tiny.gguf")))).mappable
    read.assert_called_once()


def test_a_checkpoint_of_the_size_of_gemma_4_e2b(tmp_path: Path) -> None:
    """5.1 billion parameters with its eyes and ears, 2.3 of them at work, says its card."""
    text = {
        "hidden_size": 1536,
        "intermediate_size": 6144,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "global_head_dim": 512,
        "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7,
        "sliding_window": 512,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 256,
        "vocab_size": 262_144,
        "max_position_embeddings": 131_072,
        "num_experts": None,
    }
    values = {"architectures": ["Gemma4ForConditionalGeneration"], "text_config": text}
    (tmp_path / "config.json").write_text(json.dumps(values))
    shape = shape_of(open_safetensors(tmp_path))
    assert [round(n / 1e9, 2) for n in (shape.n_params, shape.mapped_params, shape.active_params)] == [4.63, 2.35, 2.28]
    assert {spec.shares_cache for spec in shape.config.layers} == {None, 13, 14}
    assert kv_bytes(shape.config, KV_CODECS["f16"], 32_768) == 3 * 32_768 * 2048 + 12 * (9 * 64) * 1024


def test_embeddings_of_layers_stay_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.model.weight_sizes.COPIED_BYTES", 0)  # a table as small as this one is copied
    source = open_model_file(str(save("gemma4-e2b", tmp_path)))
    table = source.tensors["model.language_model.embed_tokens_per_layer.weight"]
    config, shape = read_config(source), shape_of(source)
    nbytes = loaded_bytes(source, read_weight_refs(source, config), F32.nbytes)
    eyes = sum(t.nbytes for t in source.tensors.values() if "language_model" not in t.name)
    scalars = 4 * config.n_layers  # are operands of the program
    assert nbytes == source.nbytes - table.nbytes - eyes - scalars
    assert shape.mapped_params == prod(table.shape)
    text = (t for t in source.tensors.values() if "language_model" in t.name)
    small = sum(prod(t.shape) for t in text if len(t.shape) == 1 and prod(t.shape) > 1)
    assert shape.held_params == nbytes // 4 - small
    assert load_model(source, F32).weights.per_layer.embed.packed.nbytes == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("precision", "share"),
    [
        ("Q8_0", 1.0),
        ("BF16", 1.0),
        ("Q4_K_M", 1.0),
        ("UD-Q4_K_XL", 1.0),
        ("UD-Q6_K_XL", 6.625 / 6.5625),
        ("Q2_K", 1.0),
        ("IQ2_M", 8.625 / 2.5625),
        ("IQ3_XS", 8.625 / 3.4375),
        ("int4", 1.0),
        ("", 1.0),
        ("whatever", 1.0),
    ],
)
def test_types_of_few_bits_take_more_in_memory(precision: str, share: float) -> None:
    if load_library() is None:
        pytest.skip("no native library")
    assert held_share(precision) == pytest.approx(share, rel=1e-3)


def test_without_the_library_the_files_own_blocks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.fit.weights.usual_backend", ReferenceBackend)
    assert held_share("IQ1_S") == 1.0
