"""Checkpoints packed as whole numbers, or NF4: their logits are those of the same numbers in f32."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.packed_checkpoint import Pack, awq, compressed, gptq, nf4, quark, save_integers, save_packed
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, TinyModel, save
from safetensors.torch import load_file, save_file

from localrun.base.errors import ModelFileError
from localrun.formats.safetensors import open_safetensors

TinyFile = Callable[..., Path]
Change = Callable[[torch.Tensor], torch.Tensor]
IDS = token_ids(40, VOCAB_SIZE)


def compressed_config(bits: int, symmetric: bool) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group", "group_size": 32}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}


def quark_config(kind: str, **export: str) -> dict[str, Any]:
    weight = {"dtype": kind, "qscheme": "per_group", "group_size": 32, "symmetric": kind == "int4"}
    return {"quant_method": "quark", "global_quant_config": {"weight": weight}, "export": export}


HALVES: dict[str, Any] = {"dtype": torch.float16}
FLOATS: dict[str, Any] = {"dtype": torch.float32}
CASES: dict[str, tuple[str, Pack, dict[str, Any], dict[str, Any]]] = {  # model, packer, config, what else is asked
    "compressed-tensors": ("llama-biases", compressed, compressed_config(4, True), {}),
    "compressed-tensors with zero points": (
        "qwen3-moe",
        compressed,
        compressed_config(4, False),
        {"symmetric": False},
    ),
    "AWQ": (
        "qwen3.5",
        awq,
        {"quant_method": "awq", "version": "GEMM", "group_size": 32},
        HALVES | {"symmetric": False},
    ),
    "Quark with zero points": ("qwen3-moe", quark, quark_config("uint4"), {"symmetric": False}),
    "Quark with signed codes": ("llama-biases", quark, quark_config("int4", pack_method="reorder"), FLOATS),
    "Quark in order": (
        "gemma3",
        partial(quark, in_order=True),
        quark_config("uint4", pack_method="order"),
        HALVES | {"symmetric": False},
    ),
    "GPTQ": ("mixtral", gptq, {"quant_method": "gptq", "group_size": 32, "sym": True}, HALVES),
    "GPTQ with columns in any order": (
        "gemma3",
        gptq,
        {"quant_method": "gptq", "group_size": 32, "sym": False, "desc_act": True},
        HALVES | {"symmetric": False, "ordered": True},
    ),
    "AutoRound of 2 bits in bf16": (
        "llama-biases",
        gptq,
        {"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq", "group_size": 32},
        {"bits": 2, "symmetric": False},
    ),
    "compressed-tensors of 8 bits": ("phi3", compressed, compressed_config(8, True), {"bits": 8}),
    "compressed-tensors with f32 scales": ("llama-biases", compressed, compressed_config(4, True), FLOATS),
    "GPTQ of 8 bits with f32 scales": (
        "qwen3",
        gptq,
        {"quant_method": "gptq", "group_size": 32},
        FLOATS | {"bits": 8, "symmetric": False},
    ),
    "AWQ with f32 scales": (
        "qwen3-moe",
        awq,
        {"quant_method": "awq", "version": "GEMM", "group_size": 32},
        FLOATS | {"symmetric": False},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_the_same_numbers(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    kind, pack, config, options = CASES[case]
    packed, plain = save_integers(tiny_folder(kind), tmp_path, pack, config, **options)
    found = Stepper(packed).logits(IDS)
    assert difference(found, Stepper(plain).logits(IDS)).within(max_abs=1e-4, nmse=1e-9)
    assert difference(Stepper(packed, native_threads=2).logits(IDS), found).nmse < 1e-2


@pytest.mark.parametrize("value", [0, 1])
def test_biases_without_a_place_are_left_out_if_they_are_zero(
    value: int, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = {"quant_method": "gptq", "group_size": 32, "sym": True}
    packed, plain = save_integers(tiny_folder("qwen3"), tmp_path, gptq, config, dtype=torch.float16)
    tensors = load_file(packed / "model.safetensors")
    for name in [name for name in tensors if name.endswith("scales")]:
        tensors[name.replace("scales", "bias")] = torch.full(tensors[name].shape[1:], value).half()
    save_file(tensors, packed / "model.safetensors")
    if value:
        with pytest.raises(ModelFileError, match=r"bias' has no place"):
            Stepper(packed)
    else:
        assert difference(Stepper(packed).logits(IDS), Stepper(plain).logits(IDS)).within(max_abs=1e-4, nmse=1e-9)


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("weight_zero_point", None, "has no zero points beside it"),
        ("weight_zero_point", lambda zeros: zeros[:, 1:], "has zero points of shape"),
        ("weight_zero_point", lambda zeros: zeros.float(), "has zero points of shape"),
        ("weight_scale", None, "is no matrix with scales for groups"),
        ("weight_scale", lambda scales: scales[:, 1:], "scales of shape"),
        ("weight_scale", lambda scales: scales[0], "is no matrix with scales for groups"),
        ("weight_scale", lambda scales: scales * torch.nan, "is not finite"),
        ("weight", lambda codes: codes[None], "is no matrix with scales for groups"),
        ("weight", lambda codes: codes[:-1], "has zero points of shape"),
    ],
)
def test_parts_of_quark_that_do_not_fit(
    kind: str, change: Change | None, told: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = quark_config("uint4")
    packed, _ = save_integers(tiny_folder("llama-biases"), tmp_path, quark, config, symmetric=False)
    tensors = load_file(packed / "model.safetensors")
    name = f"model.layers.0.mlp.up_proj.{kind}"
    part = tensors.pop(name)
    save_file(tensors | ({name: change(part).contiguous()} if change else {}), packed / "model.safetensors")
    with pytest.raises(ModelFileError, match=told):
        Stepper(packed)


@pytest.mark.parametrize(
    "kind", ["llama-biases", "gemma3", "gemma4-e2b", "nemotron-h-moe", "qwen3.5", "lfm2", "deepseek-v3"]
)
def test_a_matrix_of_bitsandbytes_has_the_shape_that_its_name_tells(
    kind: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    packed, plain = save_packed(tiny_folder(kind), tmp_path, nf4, config)
    found = difference(Stepper(packed).logits(IDS), Stepper(plain).logits(IDS))
    assert found.within(max_abs=1e-4, nmse=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int8])
def test_codes_of_bitsandbytes_may_lie_in_another_type(
    dtype: torch.dtype, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    """`bnb_4bit_quant_storage`: their bytes are the same, and may look like numbers that are not finite."""
    told = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_quant_storage": str(dtype)[6:]}
    usual, _ = save_packed(tiny_folder("llama-biases"), tmp_path, nf4, {"quant_method": "bitsandbytes", **told})
    other = shutil.copytree(usual, tmp_path / "other")
    tensors = load_file(usual / "model.safetensors")
    for name in [name.removesuffix(".absmax") for name in tensors if name.endswith(".absmax")]:
        tensors[name] = tensors[name].flatten().view(dtype)[:, None]
    save_file(tensors, other / "model.safetensors")
    assert torch.equal(Stepper(other).logits(IDS), Stepper(usual).logits(IDS))


@pytest.mark.parametrize("width", [96, 128])  # rows of whole blocks of 64, or not
def test_experts_of_gpt_oss_in_nf4_are_matrices_of_their_own(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {**TINY_MODELS["gpt-oss"].config, "hidden_size": width, "intermediate_size": width}
    monkeypatch.setitem(TINY_MODELS, "gpt-oss", TinyModel("gpt_oss", sizes))
    folder = save("gpt-oss", tmp_path / "apart")
    fused = load_file(folder / "model.safetensors")
    save_file(apart(fused), folder / "model.safetensors")
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    packed, plain = save_packed(folder, tmp_path, nf4, config)
    numbers = load_file(plain / "model.safetensors")
    save_file({name: together(name, numbers) for name in fused}, plain / "model.safetensors")
    found = difference(Stepper(packed).logits(IDS), Stepper(plain).logits(IDS))
    assert found.within(max_abs=1e-4, nmse=1e-9)
    types = {info.qtype for name, info in open_safetensors(packed).tensors.items() if name.endswith("down_proj.weight")}
    assert types == {"F32" if width % 64 else "NF4_G64"}
    whole = load_file(packed / "model.safetensors")
    first = "model.layers.0.mlp.experts.gate_up_projs.0"
    for told, changed in (
        ("one with a smaller number is missing", {name: one for name, one in whole.items() if first not in name}),
        ("another shape or type than that of other experts", whole | {f"{first}.bias": torch.ones(2 * width - 2)}),
        ("cannot be of an expert", whole | {n: torch.ones(1, 2, 2) for n in whole if "projs" in n and "bias" in n}),
    ):
        save_file(changed, packed / "model.safetensors")
        with pytest.raises(ModelFileError, match=told):
            open_safetensors(packed)


def apart(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Experts one by one, as Unsloth's bnb-4bit has them, and the router in a linear of its own."""
    found = {}
    for name, values in tensors.items():
        if ".experts." not in name:
            found[name.replace("mlp.router.", "mlp.router.linear.")] = values
            continue
        stem, is_bias = name.removesuffix("_bias"), name.endswith("_bias")
        for number, one in enumerate(values):
            matrix = one if is_bias else one.T
            found[f"{stem}s.{number}.{'bias' if is_bias else 'weight'}"] = matrix.contiguous()
    return found


def together(name: str, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """A tensor of the usual names, of experts that are apart."""
    if ".experts." not in name:
        return tensors[name.replace("mlp.router.", "mlp.router.linear.")]
    stem, kind = (name.removesuffix("_bias"), "bias") if name.endswith("_bias") else (name, "weight")
    of_each = [one for one in tensors if one.startswith(f"{stem}s.") and one.endswith(kind)]
    every = torch.stack([tensors[f"{stem}s.{number}.{kind}"] for number in range(len(of_each))])
    return (every if kind == "bias" else every.transpose(1, 2)).contiguous()


def test_eyes_of_bitsandbytes_are_of_another_width_than_the_model(tiny_folder: TinyFile, tmp_path: Path) -> None:
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    packed, plain = save_packed(tiny_folder("llama-biases"), tmp_path, nf4, config)
    tensors = load_file(packed / "model.safetensors")
    parts, _ = nf4(torch.randn(50, 22))
    tensors |= {f"visual.blocks.0.attn.qkv.{kind}": part.contiguous() for kind, part in parts.items()}
    save_file(tensors, packed / "model.safetensors")
    found = difference(Stepper(packed).logits(IDS), Stepper(plain).logits(IDS))
    assert found.within(max_abs=1e-4, nmse=1e-9)
