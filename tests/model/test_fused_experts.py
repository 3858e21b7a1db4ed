"""Packed checkpoints of mixtures whose experts are all in one tensor, or one by one under other names."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.packed_checkpoint import levels_of, nvfp4, words
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE, build
from safetensors.torch import load_file, save_file
from torch import Tensor

from localrun.base.errors import ModelFileError

Packed = tuple[Mapping[str, Tensor], Tensor]  # parts by their endings, and the numbers that they stand for
IDS = token_ids(40, VOCAB_SIZE)
FUSED = (".experts.gate_up_proj", ".experts.down_proj")


def mixture(name: str, folder: Path) -> Path:
    """A tiny model whose experts have whole blocks of all types."""
    sizes = {"moe_intermediate_size": 64, **({} if "vl" in name else {"hidden_size": 128})}
    build(name, **sizes).save_pretrained(folder / "model")
    return folder / "model"


def integers(experts: Tensor) -> Packed:
    """As compressed-tensors packs whole numbers of 4 bits."""
    found = [levels_of(matrix, 4, symmetric=True, dtype=torch.bfloat16) for matrix in experts]
    parts = {
        "_packed": torch.stack([words(one.codes, 4) for one in found]),
        "_scale": torch.stack([one.scales for one in found]),
        "_shape": torch.tensor(experts.shape),
    }
    return parts, torch.stack([one.numbers for one in found])


def small_floats(experts: Tensor) -> Packed:
    """As compressed-tensors packs NVFP4."""
    codes, scales, wholes, numbers = (torch.stack(each) for each in zip(*map(nvfp4, experts), strict=True))
    return {"_packed": codes, "_scale": scales, "_global_scale": 1 / wholes}, numbers


def fp8(experts: Tensor) -> Packed:
    """With a scale of each expert."""
    scales = experts.abs().amax((1, 2), keepdim=True) / 448
    codes = (experts / scales).to(torch.float8_e4m3fn)
    return {"": codes, "_scale_inv": scales}, codes.float() * scales


def fp8_blocks(experts: Tensor) -> Packed:
    """With a scale of each block of 16 × 16."""
    blocks = experts.unflatten(2, (-1, 16)).unflatten(1, (-1, 16))  # [n, down, 16, across, 16]
    scales = blocks.abs().amax((2, 4), keepdim=True) / 448
    codes = (blocks / scales).to(torch.float8_e4m3fn)
    whole = codes.float() * scales
    return {"": codes.reshape(experts.shape), "_scale_inv": scales[:, :, 0, :, 0]}, whole.reshape(experts.shape)


def turned(experts: Tensor) -> Packed:
    """Likewise [n, columns, rows], as Qwen's Qwen3-VL."""
    parts, numbers = fp8_blocks(experts)
    return {ending: part.swapaxes(1, 2) for ending, part in parts.items()}, numbers


def compressed(format: str, **weights: Any) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": "compressed-tensors", "format": format, "config_groups": groups}


INTEGERS = compressed("pack-quantized", num_bits=4, type="int", symmetric=True, group_size=32)
NVFP4 = compressed("nvfp4-pack-quantized", num_bits=4, type="float", group_size=16)
FP8 = {"quant_method": "fp8", "weight_block_size": None}
BLOCKS = {"quant_method": "fp8", "weight_block_size": [16, 16]}
CASES: dict[str, tuple[str, Callable[[Tensor], Packed], dict[str, Any]]] = {
    "whole numbers": ("gemma4-moe", integers, INTEGERS),
    "NVFP4": ("gemma4-moe", small_floats, NVFP4),
    "FP8": ("gemma4-moe", fp8, FP8),
    "FP8 in blocks": ("qwen3-vl-moe", fp8_blocks, BLOCKS),
    "FP8 in blocks, columns first": ("qwen3-vl-moe", turned, BLOCKS),
}


def save_twins(
    folder: Path, target: Path, pack: Callable[[str, Tensor], tuple[dict[str, Tensor], Tensor]], config: dict[str, Any]
) -> tuple[Path, Path]:
    """The checkpoint in `folder` with its experts packed, and the same numbers in f32."""
    packed: dict[str, Tensor] = {}
    plain: dict[str, Tensor] = {}
    for name, values in load_file(folder / "model.safetensors").items():
        is_fused = name.endswith(FUSED)
        parts, plain[name] = pack(name, values) if is_fused else ({name: values}, values)
        packed |= {name: part.contiguous() for name, part in parts.items()}
    assert len(packed) > len(plain), "nothing was packed"
    for path, tensors in ((target / "packed", packed), (target / "plain", plain)):
        shutil.copytree(folder, path)
        save_file(tensors, path / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text()) | {"quantization_config": config}
    (target / "packed" / "config.json").write_text(json.dumps(settings))
    return target / "packed", target / "plain"


def assert_twins(packed: Path, plain: Path) -> None:
    expected = Stepper(plain).logits(IDS)
    assert difference(Stepper(packed).logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    assert difference(Stepper(packed, native_threads=2).logits(IDS), expected).nmse < 1e-2


@pytest.mark.parametrize("case", CASES)
def test_all_experts_in_one_tensor(case: str, tmp_path: Path) -> None:
    kind, pack, config = CASES[case]

    def fused(name: str, experts: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        parts, numbers = pack(experts)
        return {name + ending: part for ending, part in parts.items()}, numbers

    assert_twins(*save_twins(mixture(kind, tmp_path), tmp_path, fused, config))


@pytest.mark.parametrize("part", ["experts", "moe.experts"])
def test_experts_of_gemma_one_by_one(part: str, tmp_path: Path) -> None:
    """As ModelOpt writes them."""

    def apart(name: str, experts: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        found: dict[str, Tensor] = {}
        numbers = []
        names = ("gate_proj", "up_proj") if "gate_up" in name else ("down_proj",)
        for index, both in enumerate(experts):
            for proj, matrix in zip(names, both.chunk(len(names)), strict=True):
                codes, scales, whole, values = nvfp4(matrix)
                stem = f"{name.rpartition('.experts.')[0]}.{part}.{index}.{proj}.weight"
                found |= {stem: codes, f"{stem}_scale": scales, f"{stem}_scale_2": whole}
                numbers.append(values)
        return found, torch.cat(numbers).reshape(experts.shape)

    config = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert_twins(*save_twins(mixture("gemma4-moe", tmp_path), tmp_path, apart, config))


def test_scales_of_the_whole_are_of_all_experts(tmp_path: Path) -> None:
    """One for each, or one for all."""

    def fused(name: str, experts: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        parts, numbers = small_floats(experts)
        return {name + ending: part for ending, part in parts.items()}, numbers

    packed, plain = save_twins(mixture("gemma4-moe", tmp_path), tmp_path, fused, NVFP4)
    tensors, numbers = (load_file(folder / "model.safetensors") for folder in (packed, plain))
    name = next(name for name in tensors if name.endswith("_global_scale"))
    whole, experts = tensors[name], numbers[name.removesuffix("_global_scale")]
    save_file(tensors | {name: whole[:1].clone()}, packed / "model.safetensors")
    numbers[name.removesuffix("_global_scale")] = experts * (whole / whole[0])[..., None]
    save_file(numbers, plain / "model.safetensors")
    assert_twins(packed, plain)
    save_file(tensors | {name: whole[:3].clone()}, packed / "model.safetensors")
    with pytest.raises(ModelFileError, match=r"scales of the whole of type F32 and shape \[3, 1\]"):
        Stepper(packed)
