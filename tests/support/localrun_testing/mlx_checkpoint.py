"""Tiny checkpoints as mlx-lm 0.32 leaves them: named as its converter does (`models/*.py`, sanitize), and packed."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

GROUP = 32
FP4 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
ADDED_NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "q_norm.weight",
               "k_norm.weight")  # fmt: skip
SPELLINGS = (  # of a matrix elsewhere, and in MLX
    (r"(feed_forward|experts\.\d+)\.w1", r"\1.gate_proj"),
    (r"(feed_forward|experts\.\d+)\.w2", r"\1.down_proj"),
    (r"(feed_forward|experts\.\d+)\.w3", r"\1.up_proj"),
    (r"mixer\.experts\.(\d+)\.up_proj", r"mixer.experts.\1.fc1"),
    (r"mixer\.experts\.(\d+)\.down_proj", r"mixer.experts.\1.fc2"),
    (r"(block_sparse_moe)\.input_linear", r"\1.switch_mlp.gate_up_proj"),
    (r"(block_sparse_moe)\.output_linear", r"\1.switch_mlp.down_proj"),
    (r"(layers\.\d+\.experts)\.(gate_up|down)_proj", r"\1.switch_glu.\2_proj.weight"),  # Gemma 4
    (r"(mlp\.experts)\.(gate_up|down)_proj$", r"\1.\2_proj.weight"),  # gpt-oss
    (r"(mlp\.experts)\.(gate_up|down)_proj_bias", r"\1.\2_proj.bias"),
)


def save_named(folder: Path, target: Path) -> Path:
    """The checkpoint in `folder` as MLX's converter leaves it in f32."""
    originals = load_file(folder / "model.safetensors")
    tensors: dict[str, Tensor] = {}
    experts: dict[str, list[Tensor]] = defaultdict(list)
    adds = any("linear_attn" in name for name in originals)  # Qwen3.5 and Qwen3-Next
    dense = any("shared_mlp" in name for name in originals) and not any("sparse_moe" in name for name in originals)
    keeps_w = any("conv.conv" in name for name in originals) and not any("expert" in name for name in originals)
    for name in sorted(originals, key=lambda name: [int(part) if part.isdigit() else part for part in name.split(".")]):
        values = originals[name]
        if adds and name.endswith(ADDED_NORMS):
            values = values + 1
        if name.endswith(("conv1d.weight", "conv.conv.weight")):
            values = values.transpose(1, 2)
        for new, tensor in renamed(name, values, dense, keeps_w):
            if found := re.search(r"\.experts\.\d+\.", new):
                experts[new.replace(found[0], ".switch_mlp.")].append(tensor)
            else:
                tensors[new] = tensor.contiguous()
    shutil.copytree(folder, target)
    save_file(tensors | {name: torch.stack(each) for name, each in experts.items()}, target / "model.safetensors")
    return target


def renamed(name: str, values: Tensor, dense: bool, keeps_w: bool) -> Iterator[tuple[str, Tensor]]:
    """A tensor under its name in MLX; of gate and up in one, both."""
    if "mlp.experts" in name and values.ndim == 3:  # of gpt-oss, whose matrices are turned elsewhere
        values = values.transpose(1, 2)
    for pattern, spelling in () if keeps_w else SPELLINGS:
        name = re.sub(pattern, spelling, name)
    if dense:  # of Granite 4 H
        name = name.replace("shared_mlp.input_linear", "mlp.gate_up_proj").replace(
            "shared_mlp.output_linear", "mlp.down_proj"
        )
    if ("switch" not in name and "mlp.experts" not in name and not dense) or "gate_up_proj" not in name:
        yield name, values
        return
    rows = values.ndim - (1 if name.endswith("bias") else 2)
    if "mlp.experts" in name:
        gate, up = (values.index_select(rows, torch.arange(first, values.shape[rows], 2)) for first in (0, 1))
    else:
        gate, up = values.chunk(2, rows)
    yield name.replace("gate_up", "gate"), gate
    yield name.replace("gate_up", "up"), up


def save_packed(
    folder: Path, target: Path, mode: str, bits: int, dtype: torch.dtype = torch.bfloat16
) -> tuple[Path, Path]:
    """The checkpoint of MLX in `folder` packed, and the same numbers in f32 -> two folders."""
    packed, plain = {}, {}
    for name, values in load_file(folder / "model.safetensors").items():
        plain[name] = packed[name] = values
        unfit = values.ndim < 2 or values.shape[-1] % GROUP or not name.endswith(".weight") or "conv" in name
        if not unfit and "vis" not in name:
            parts = affine(values, bits, dtype) if mode == "affine" else mxfp4(values)
            plain[name] = parts.pop("numbers")
            packed |= {name.removesuffix("weight") + kind: part.contiguous() for kind, part in parts.items()}
    for path, tensors in ((target / "packed", packed), (target / "plain", plain)):
        shutil.copytree(folder, path)
        save_file(tensors, path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization"] = config["quantization_config"] = {"group_size": GROUP, "bits": bits, "mode": mode}
    (target / "packed" / "config.json").write_text(json.dumps(config))
    return target / "packed", target / "plain"


def affine(weights: Tensor, bits: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """Codes in 32-bit words, scales and biases; and the numbers that they stand for."""
    groups = weights.reshape(*weights.shape[:-1], -1, GROUP)
    low, high = groups.amin(-1), groups.amax(-1)
    scales, biases = ((high - low) / (2**bits - 1)).clamp_min(1e-7).to(dtype), low.to(dtype)
    wide_scales, wide_biases = scales.float()[..., None], biases.float()[..., None]
    codes = ((groups - wide_biases) / wide_scales).round().clamp(0, 2**bits - 1)
    numbers = (codes * wide_scales + wide_biases).reshape(weights.shape)
    stream = (codes.reshape(weights.shape).long()[..., None] >> torch.arange(bits)) & 1
    return {"weight": words(stream.flatten(-2), 1), "scales": scales, "biases": biases, "numbers": numbers}


def mxfp4(weights: Tensor) -> dict[str, Tensor]:
    """Codes of 4 bits and powers of two."""
    values = torch.tensor(FP4)
    groups = weights.reshape(*weights.shape[:-1], -1, GROUP)
    exponents = groups.abs().amax(-1).clamp_min(1e-6).log2().ceil() - 2
    scaled = groups / exponents.exp2()[..., None]
    codes = (scaled.abs()[..., None] - values).abs().argmin(-1)
    numbers = (values[codes] * scaled.sign() * exponents.exp2()[..., None]).reshape(weights.shape)
    signed = (codes + 8 * (scaled < 0)).reshape(weights.shape)
    return {"weight": words(signed, 4), "scales": (exponents + 127).to(torch.uint8), "numbers": numbers}


def words(codes: Tensor, bits: int) -> Tensor:
    """Codes of rows in 32-bit words, the first in the lowest bits. [..., n] -> uint32 [..., n · bits / 32]"""
    each = codes.long().reshape(*codes.shape[:-1], -1, 32 // bits) << (bits * torch.arange(32 // bits))
    return each.sum(-1).to(torch.uint32)
