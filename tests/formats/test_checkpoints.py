"""Quantised checkpoints: the numbers that each format's own library unpacks."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing.checkpoint_samples import DIGESTS, NAME, SAMPLES, one_more_scheme, sample, unpacked, written

from localrun.formats.checkpoints.beside import METHODS_BESIDE, with_declared
from localrun.formats.checkpoints.registry import METHODS, precision_label
from localrun.formats.checkpoints.small_floats import f8_e4m3, f8_e5m2, powers_of_two
from localrun.formats.checkpoints.unread import unread_method
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import PRECISIONS
from localrun.hub.disk.stored import stored_at


def test_samples_are_those_that_the_libraries_wrote() -> None:
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in SAMPLES.glob("*.safetensors")}
    assert found == DIGESTS


@pytest.mark.parametrize(("name", "decode"), {"F8_E4M3": f8_e4m3, "F8_E5M2": f8_e5m2, "F8_E8M0": powers_of_two}.items())
def test_small_floats_are_those_of_torch(name: str, decode: Callable[[np.ndarray], np.ndarray]) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = QUANT_TYPES[name].decode(torch.from_numpy(codes), (256,)).numpy()
    np.testing.assert_array_equal(decode(codes), expected)


@pytest.mark.parametrize("name", DIGESTS)
def test_numbers_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    config, tensors = sample(name)
    expected = tensors.pop("expected")
    model = written(tmp_path, config, tensors)
    assert set(model.tensors) <= {NAME, NAME.removesuffix("weight") + "scale", "embed_tokens.weight"}
    assert model.tensors[NAME].shape == expected.shape
    found, n_rows = unpacked(model), expected.numel() // expected.shape[-1]
    if name.endswith("-nf4"):  # which the library rounds
        found = found.to(tensors["embed_tokens.weight"].dtype).float()
    if name.startswith(("nvfp4", "bitsandbytes-int8")):  # of which a factor is one of products, or of scales
        torch.testing.assert_close(found, expected, rtol=2**-22, atol=0)
    else:
        assert torch.equal(found, expected)
    assert torch.equal(unpacked(model, n_rows - 2, 2), unpacked(model).reshape(n_rows, -1)[-2:])


HELD = {
    "mlx-02-affine-4-g64": "INT4_G64",
    "mlx-07-affine-4-g128": "INT4_G64",
    "mlx-06-affine-4-g32": "Q4_1",
    "mlx-14-affine-1-g128": "INT2_G64",
    "compressed-00-int4-g64": "Q4_0",
    "compressed-01-int4-g64-zeros": "INT4_ZP_G32",
    "compressed-02-int4-rows": "Q4_0",
    "compressed-03-int4-g16-zeros": "F32",
    "compressed-04-int4-g32": "INT4_SYM_F32_G32",
    "compressed-05-int3-g32-zeros": "Q4_0",
    "compressed-06-int8-g32": "Q8_0",
    "compressed-07-int8-g64-zeros": "INT8_ZP_G32",
    "compressed-08-int8-rows": "Q8_0",
    "gptq-1-int3-zeros": "Q4_0",
    "gptq-2-int4-zeros": "INT4_ZP_G32",
    "gptq-3-int8-zeros": "INT8_ZP_G32",
    "gptq-4-int4": "Q4_0",
    "gptq-5-int8": "Q8_0",
    "awq-gemm": "INT4_ZP_G32",
    "awq-gemv": "INT4_ZP_G32",
    "bitsandbytes-0-nf4": "NF4_G64",
    "bitsandbytes-1-nf4": "NF4_G64",
    "bitsandbytes-int8": "INT8_SYM_F32_G128",
    "gemma-int2": "INT4_SYM_F32_G128",
}


@pytest.mark.parametrize("name", HELD)
def test_matrices_are_held_in_the_smallest_type_that_has_their_numbers(name: str, tmp_path: Path) -> None:
    config, tensors = sample(name)
    del tensors["expected"]
    assert written(tmp_path, config, tensors).tensors[NAME].qtype == HELD[name]


@pytest.mark.parametrize(
    ("name", "file", "wrap"),
    [("nvfp4-modelopt", "hf_quant_config.json", "quantization"), ("gptq-4-int4", "quantize_config.json", "")],
)
def test_a_file_beside_the_config_declares_it(name: str, file: str, wrap: str, tmp_path: Path) -> None:
    config, tensors = sample(name)
    expected, declared = tensors.pop("expected"), config["quantization_config"]
    del declared["quant_method"]
    (tmp_path / file).write_text(json.dumps({wrap: declared} if wrap else declared))
    torch.testing.assert_close(unpacked(written(tmp_path, {}, tensors)), expected, rtol=2**-22, atol=0)
    (stored,) = stored_at(tmp_path)
    assert stored.precision == precision_label(
        config | {"quantization_config": declared | {"quant_method": METHODS_BESIDE[file]}}
    )


QUARK, CT = {"quant_method": "quark"}, {"quant_method": "compressed-tensors"}
AUTO_ROUND = {"quant_method": "auto-round", "bits": 8, "data_type": "fp", "group_size": [128, 128]}
OTHER_WORDS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {  # sample, config, tensors under other names
    "quark fp4": (
        "compressed-mxfp4",
        QUARK | {"global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}},
        {"weight_packed": "weight"},
    ),
    "modelopt MXFP4": (
        "compressed-mxfp4",
        {"quant_method": "modelopt", "quant_algo": "MXFP4"},
        {"weight_packed": "weight"},
    ),
    "modelopt W4A8_MXFP4_FP8": (
        "compressed-mxfp4",
        {"quant_method": "modelopt", "quant_algo": "W4A8_MXFP4_FP8"},
        {"weight_packed": "weight"},
    ),
    "modelopt MXFP8": ("compressed-mxfp8", {"quant_method": "modelopt", "quant_algo": "MXFP8"}, {}),
    "autoround fp8": (
        "fp8-0-blocks",
        AUTO_ROUND | {"packing_format": "auto_round:fp8", "weight_block_size": [3, 32]},
        {"weight_scale_inv": "weight_scale"},
    ),
    "autoround fp8 of rows": ("fp8-channel", AUTO_ROUND, {}),
    "autoround fp8_static": ("fp8-channel", AUTO_ROUND | {"packing_format": "auto_round:fp8_static"}, {}),
    "transformers' mxfp8": ("compressed-mxfp8", {"quant_method": "mxfp8"}, {"weight_scale": "weight_scale_inv"}),
    "transformers' metal": (
        "mlx-02-affine-4-g64",
        {"quant_method": "metal", "bits": 4, "group_size": 64},
        {"biases": "qbiases"},
    ),
    "quark fp8": ("fp8-tensor", QUARK | {"global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, {}),
}


@pytest.mark.parametrize("case", OTHER_WORDS)
def test_other_programs_have_the_same_numbers_under_other_names(case: str, tmp_path: Path) -> None:
    name, declared, renamed = OTHER_WORDS[case]
    _, tensors = sample(name)
    expected = tensors.pop("expected")
    config = {"quantization_config": declared}
    assert not unread_method(config)
    model = written(tmp_path, config, {f"w.{renamed.get(key[2:], key[2:])}": part for key, part in tensors.items()})
    assert torch.equal(unpacked(model), expected)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=["of the matrix", "of rows", "of blocks"])
def test_scales_of_gptqmodel_are_divisors(shape: tuple[int, ...], tmp_path: Path) -> None:
    codes = torch.arange(-1.5, 1.5, 1 / 32).reshape(3, 32).to(torch.float8_e4m3fn)
    scales = torch.linspace(200, 3000, math.prod(shape)).reshape(shape)
    declared: dict[str, Any] = {"quant_method": "fp8", "format": "float8_e4m3fn", "weight_scale_semantics": "inverse"}
    of_each = scales[:, None] if shape == (3,) else scales
    if shape == (2, 2):
        declared["weight_block_size"], of_each = [2, 16], scales.repeat_interleave(2, 0)[:3].repeat_interleave(16, 1)
    tensors = {NAME: codes, f"{NAME}_scale_inv": scales}
    model = written(tmp_path, {"quantization_config": declared}, tensors)
    torch.testing.assert_close(unpacked(model), codes.float() / of_each, rtol=2**-22, atol=0)


def test_compressed_tensors_first_had_a_key_of_its_own(tmp_path: Path) -> None:
    config, tensors = sample("compressed-00-int4-g64")
    expected = tensors.pop("expected")
    config["compression_config"] = config.pop("quantization_config")
    assert torch.equal(unpacked(written(tmp_path, config, tensors)), expected)
    assert precision_label(config) == "int4 g64"


@pytest.mark.parametrize("part", ["quant_algo", "kv_cache_quant_algo"])
def test_weights_are_floats_where_modelopt_quantised_the_kv_cache_alone(part: str) -> None:
    declared = {"quant_algo": None, "kv_cache_quant_algo": None} | {part: "FP8"}
    config = with_declared({}, {"hf_quant_config.json"}, lambda name: {"quantization": declared})
    names = ["model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.k_proj.k_scale"]
    assert not unread_method(config, names)
    assert precision_label(config) == ("fp8" if part == "quant_algo" else "")


MIXED = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
ROTATION = {"type": "hadamard", "apply": [{"targets": ["re:.*o_proj$"], "location": "weight_input", "inverse": True}]}
ONLINE: list[Any] = [
    {"config_groups": {"R2": ROTATION, "R4": {"apply": [{"targets": ["re:.*down_proj$"], "location": "input"}]}}},
    {"config_groups": []},
    {"config_groups": {"R1": []}},
    {"config_groups": {"R1": {}}},
    {"config_groups": {"R1": {"apply": [{}]}}},
    ["R1"],
]


def test_mixed_precision_is_read_where_each_layer_can_be() -> None:
    layers = {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4", "group_size": 16}}
    assert not unread_method({"quantization_config": MIXED | {"quantized_layers": layers}})


def test_weights_that_were_rotated_and_saved_are_weights() -> None:
    declared = CT | {"format": "pack-quantized", "transform_config": {"config_groups": {"R2": ROTATION}}}
    assert not unread_method({"quantization_config": declared})


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (QUARK | {"global_quant_config": {"weight": {"dtype": "uint4"}}}, "quark uint4"),
        (QUARK | {"global_quant_config": {"weight": [{"dtype": "fp8_e4m3"}, {"dtype": "int4"}]}}, "quark"),
        (QUARK | {"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_channel"}}}, "int4 per_channel"),
        (QUARK | {"algo_config": [{"name": "rotation", "r1": True, "r4": True}]}, "algo_config"),
        (QUARK, "quark"),
        (AUTO_ROUND | {"data_type": "mx_int", "packing_format": "auto_round"}, "auto-round mx_int"),
        (AUTO_ROUND | {"packing_format": "auto_round:llm_compressor", "rotation_config": {"block_size": 32}}, "rotat"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"}, "modelopt NVFP4_AWQ"),
        (MIXED | {"quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "W4A16_AWQ"}}}, "W4A16_AWQ"),
        (CT | {"format": "mxfp6-pack-quantized"}, "mxfp6-pack-quantized"),
        (CT | {"format": "dense", "sparsity_config": {"format": "sparse-24-bitmask"}}, "sparsity_config"),
        *((CT | {"format": "pack-quantized", "transform_config": one}, "transform_config") for one in ONLINE),
        *(({"quant_method": name}, name) for name in ("hqq", "torchao", "fp_quant", "exl3", "aqlm", "vptq", "eetq")),
    ],
)
def test_what_cannot_be_read_is_named(declared: dict[str, Any], told: str) -> None:
    assert told in unread_method({"quantization_config": declared})


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        ({"quant_method": "\x1b[31m" + "x" * 300}, "x" * 15),
        ({"quant_method": "gptq", "bits": 4, "group_size": 1 << 200}, "gptq int4 rows"),
        ({"quant_method": "gptq", "bits": -(1 << 200), "group_size": 64}, "gptq"),
        (AUTO_ROUND | {"packing_format": "auto_round:fp8"}, "fp8"),
        ({"quant_method": "fp8", "bits": 8, "format": "float8_e4m3fn"}, "fp8"),
        (AUTO_ROUND | {"packing_format": "auto_round:llm_compressor", "data_type": "mx_fp"}, "autoround"),
        ({"bits": 4, "mode": "\x1b[31m" + "x" * 300}, "x" * 15),
    ],
)
def test_a_label_is_short_whatever_a_config_says(declared: dict[str, Any], label: str) -> None:
    assert precision_label({"quantization_config": declared}) == label


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        *(("W_q", "hqq"), ("weight._data", "quanto"), ("weight_qdata", "torchao"), ("qweight", "GPTQ")),
        *(("weight_packed", "compressed-tensors"), ("weight.absmax", "bitsandbytes"), ("scales", "MLX")),
        *(("weight_scale", "FP8"), ("weight_scale_inv", "FP8")),
    ],
)
def test_quantised_weights_are_named_without_a_config(part: str, kind: str) -> None:
    names = ["model.norm.weight", f"model.layers.0.self_attn.q_proj.{part}"]
    assert kind in unread_method({"model_type": "llama"}, names)
    assert not unread_method({"model_type": "llama"}, names[:1])


def test_floats_of_which_many_are_zero_are_floats() -> None:
    """As llm-compressor leaves pruned models whose zeros stay in their files."""
    sparse = CT | {"format": "dense", "sparsity_config": {"format": "dense", "sparsity_structure": "2:4"}}
    assert not unread_method({"quantization_config": sparse})


def test_no_label_is_a_precision_that_floats_are_quantised_to() -> None:
    """What a checkpoint is labelled is the precision it is loaded in: `int8` would quantise its embedding."""
    assert not {method.label for method in METHODS.values()} & set(PRECISIONS)
    declared = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert precision_label({"quantization_config": declared}) == "llm.int8"


def test_the_first_awq_files_say_it_in_other_words(tmp_path: Path) -> None:
    declared = {"zero_point": True, "q_group_size": 128, "w_bit": 4, "version": "GEMM"}
    config = with_declared({"dtype": "float16"}, {"quant_config.json"}, lambda name: declared)
    assert precision_label(config) == "awq int4 g128"
    assert not unread_method(config)


@pytest.mark.parametrize("order", ["any", "one after the other", "untold"])
def test_columns_in_groups_by_their_activations(order: str, tmp_path: Path) -> None:
    config, tensors = sample("compressed-00-int4-g64")
    scales, numbers = tensors["w.weight_scale"].float(), tensors.pop("expected")
    groups = torch.arange(128) // 64 if order == "one after the other" else torch.arange(128) * 5 // 2 % 2
    if order == "untold":
        groups = torch.full((128,), -1)
    tensors["w.weight_g_idx"] = groups.int()
    config["quantization_config"]["config_groups"]["group_0"]["weights"]["actorder"] = "group"
    levels = (numbers / scales.repeat_interleave(64, 1)).round()
    taken = torch.arange(128) // 64 if order == "untold" else groups
    model = written(tmp_path, config, tensors)
    columns = torch.frombuffer(model.read("w.order"), dtype=torch.int32).long()
    assert torch.equal(columns, taken.argsort(stable=True))
    assert model.tensors[NAME].qtype == "Q4_0"
    assert torch.equal(unpacked(model), (levels * scales[:, taken])[:, columns])


@pytest.mark.parametrize(("targets", "bits"), [(["w"], 8), (["re:.*w$"], 8), (["re:^other"], 4)], ids=str)
def test_modules_of_a_mixture_are_told_apart_by_name(targets: list[str], bits: int, tmp_path: Path) -> None:
    config, tensors = sample("compressed-00-int4-g64")
    one_more_scheme(*targets)(config, tensors)
    del tensors["expected"], tensors["w.weight_shape"]
    assert written(tmp_path, config, tensors).tensors[NAME].shape == (3, 512 // bits)


@pytest.mark.parametrize("mode", ["mxfp4", "nvfp4", "mxfp8"])
def test_what_mlx_says_of_one_matrix_says_all_of_it(mode: str, tmp_path: Path) -> None:
    """As it packs routers beside experts of small floats: a matrix without a mode of its own is affine."""
    config, tensors = sample("mlx-05-affine-8-g64")
    expected, own = tensors.pop("expected"), {"group_size": 64, "bits": 8}
    config["quantization"] = {"group_size": 16 if mode == "nvfp4" else 32, "bits": 4, "mode": mode, "model.w": own}
    assert torch.equal(unpacked(written(tmp_path, config, tensors)), expected)


@pytest.mark.parametrize("left", ["bits", "group_size"])
def test_mlx_packs_as_it_usually_does_where_the_config_leaves_it_out(left: str, tmp_path: Path) -> None:
    config, tensors = sample("mlx-02-affine-4-g64")
    expected = tensors.pop("expected")
    del config["quantization"][left]
    assert torch.equal(unpacked(written(tmp_path, config, tensors)), expected)
