"""models.toml: every entry by the documented schema, and by what its own name promises."""

import re
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from localrun.fit.bytes import kv_bytes_per_token
from localrun.hub.catalogue import (
    BUILTIN,
    CatalogueModel,
    read_catalogue,
    search_catalogue,
    suggest,
)
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.hub.names import parse_file_name
from localrun.hub.safe_names import is_repo
from localrun.ops.kv import KV_CODECS

MODELS = {name: model for name, model in read_catalogue().items() if name != BUILTIN}
# Parameters in billions, as the models' own pages say (of Gemma 3: of the language model alone).
PUBLISHED = {
    "smollm2-360m": 0.362,
    "qwen2.5-0.5b": 0.494,
    "qwen3-0.6b": 0.596,
    "gemma-3-1b": 1.0,
    "llama-3.2-1b": 1.24,
    "lfm2.5-1.2b": 1.17,
    "smollm3-3b": 3.08,
    "granite-4-h-tiny": 6.94,
    "lfm2-8b-a1b": 8.34,
    "gemma-4-26b-a4b": 25.2,
    "qwen3-coder-30b-a3b": 30.5,
    "gemma-4-31b": 30.7,
    "nemotron-3-nano-30b-a3b": 31.6,
    "gpt-oss-120b": 116.8,
    "minicpm5-1b": 1.08,
    "minicpm5-2b": 2.52,
    "granite-4.1-3b": 3.40,
    "nemotron-3-nano-4b": 3.97,
    "gemma-4-12b": 12.0,
    "qwen3-1.7b": 1.72,
    "gemma-2-2b": 2.61,
    "llama-3.2-3b": 3.21,
    "phi-4-mini": 3.84,
    "gemma-3-4b": 3.88,
    "mistral-7b": 7.25,
    "olmo-2-7b": 7.30,
    "qwen2.5-coder-7b": 7.62,
    "llama-3.1-8b": 8.03,
    "r1-distill-llama-8b": 8.03,
    "qwen3-8b": 8.19,
    "gemma-3-12b": 11.8,
    "qwen3-14b": 14.8,
    "phi-4": 14.7,
    "gpt-oss-20b": 20.9,
    "gemma-3-27b": 27.0,
    "qwen3-30b-a3b": 30.5,
    "qwen3-32b": 32.8,
    "qwen2.5-coder-32b": 32.8,
    "mixtral-8x7b": 46.7,
    "llama-3.3-70b": 70.6,
    **dict.fromkeys(("qwen3-4b", "qwen3-4b-2507", "qwen3-4b-thinking-2507"), 4.02),
}
# Those whose pages count what sees, too, and layers that draft: what the name says.
NAMED = {
    "gemma-4-e2b": 2.3,  # of both: "effective", those that do not stay on the disk
    "gemma-4-e4b": 4.5,
    "qwen3.5-0.8b": 0.8,
    "qwen3.5-2b": 2.0,
    "qwen3.5-4b": 4.2,
    "qwen3.5-9b": 9.0,
    **dict.fromkeys(("qwen3.5-27b", "qwen3.6-27b", "qwen3.8-27b"), 27.0),
    "qwen3.6-35b-a3b": 35.0,
}


def check(value: Any, schema: type) -> None:
    """`value` has the required keys of a TypedDict, no unknown ones, and each of its type."""
    hints = get_type_hints(schema)
    assert schema.__required_keys__ <= set(value) <= set(hints)  # type: ignore[attr-defined]
    for key, item in value.items():
        hint = hints[key]
        if get_origin(hint) is list:
            assert all(type(element) is get_args(hint)[0] for element in item)
        elif hint in (str, int, bool):
            assert type(item) is hint, key


@pytest.mark.parametrize("name", MODELS)
def test_an_entry_follows_the_schema(name: str) -> None:
    model = MODELS[name]
    check(model, CatalogueModel)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name)
    assert is_repo(model["gguf"])
    assert is_repo(model["safetensors"])
    assert model["precisions"]
    assert all(parse_file_name(f"x-{precision}.gguf").precision == precision for precision in model["precisions"])
    assert len(model["note"]) <= 100
    assert model["note"].endswith(".")


@pytest.mark.parametrize("name", MODELS)
def test_the_shape_has_the_published_parameters(name: str) -> None:
    shape = catalogue_shape(MODELS[name])
    assert shape is not None
    assert shape.obstacle == ""
    billions = shape.held_params / 1e9
    if name in NAMED:
        assert billions == pytest.approx(NAMED[name], rel=0.065)
    else:
        assert billions == pytest.approx(PUBLISHED[name], rel=0.015)


def test_the_cache_of_a_known_model() -> None:
    """Qwen3 4B: 36 layers of 8 heads of 128 dims, keys and values, 2 bytes each."""
    shape = catalogue_shape(MODELS["qwen3-4b"])
    assert shape is not None
    assert kv_bytes_per_token(shape.config, KV_CODECS["f16"]) == 36 * 8 * 128 * 2 * 2
    hybrid = catalogue_shape(MODELS["qwen3.5-0.8b"])
    assert hybrid is not None
    assert kv_bytes_per_token(hybrid.config, KV_CODECS["f16"]) == 6 * 2 * 256 * 2 * 2, "of each fourth layer"
    assert sum(layer.mixer.state_size for layer in hybrid.config.layers if layer.mixer) == 18 * (
        16 * 128 * 128 + 3 * 3 * 16 * 128
    )
    gemma = catalogue_shape(MODELS["gemma-3-4b"])
    assert gemma is not None
    assert [layer.window for layer in gemma.config.layers[:7]] == [1024] * 5 + [None, 1024]


def test_the_choice_is_wide() -> None:
    shapes = [shape for shape in map(catalogue_shape, MODELS.values()) if shape]
    assert 20 <= len(MODELS) <= 56
    assert min(shape.n_params for shape in shapes) < 0.5e9
    assert max(shape.n_params for shape in shapes) > 100e9
    assert len({model["licence"] for model in MODELS.values()}) >= 4
    assert sum(model.get("thinking", False) for model in MODELS.values()) >= 3
    assert sum(shape.active_params < shape.n_params / 3 for shape in shapes) >= 8
    kinds = {kind for model in MODELS.values() for kind in model.get("config", {}).get("architectures", ())}
    assert len(kinds) >= 15, "every kind that people run has one"


def test_search() -> None:
    assert "qwen3-4b" in search_catalogue("qwen3")
    assert list(search_catalogue("CODER 32b")) == ["qwen2.5-coder-32b"]
    assert search_catalogue("nonsense") == {}
    assert BUILTIN not in search_catalogue("")


@pytest.mark.parametrize(
    ("gib", "name"), [(4, "qwen3.5-2b"), (8, "qwen3.5-4b"), (16, "qwen3.5-9b"), (512, "qwen3.5-9b")]
)
def test_the_first_model_suits_the_machine(gib: int, name: str) -> None:
    assert suggest(gib << 30) == name
    assert name in MODELS


def test_a_model_without_a_shape_has_none() -> None:
    assert catalogue_shape(read_catalogue()[BUILTIN]) is None
