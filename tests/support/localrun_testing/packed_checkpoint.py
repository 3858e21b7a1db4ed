"""Tiny checkpoints whose matrices are packed as whole numbers, written after the formats' descriptions."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from localrun.formats.decode_table import NF4_VALUES
from localrun_testing.mlx_checkpoint import FP4

GROUP = 32
ROWS = 16  # whole words of zero points
LEFT = ("embed", "norm", "conv", "router", ".gate.", "lm_head", "vis")  # names of what is not packed


@dataclass(frozen=True)
class Levels:
    """A matrix [rows, columns] as codes of `bits`, and a scale and a zero point [rows, groups] of each group."""

    bits: int
    codes: Tensor
    scales: Tensor
    zeros: Tensor
    groups: Tensor  # of each column

    @property
    def numbers(self) -> Tensor:
        return self.scales.float()[:, self.groups] * (self.codes - self.zeros[:, self.groups])


def levels_of(matrix: Tensor, bits: int, symmetric: bool, dtype: torch.dtype, ordered: bool = False) -> Levels:
    """Rounded to the nearest; `ordered`: groups take columns from all over the matrix."""
    n_groups = matrix.shape[1] // GROUP
    groups = torch.arange(matrix.shape[1]) % n_groups if ordered else torch.arange(matrix.shape[1]) // GROUP
    parts = torch.stack([matrix[:, groups == group] for group in range(n_groups)], 1)
    low, high = parts.amin(-1).clamp_max(0), parts.amax(-1).clamp_min(0)
    half, most = 1 << (bits - 1), (1 << bits) - 1
    spread = torch.maximum(low.abs(), high) / (half - 1) if symmetric else (high - low) / most
    scales = spread.clamp_min(1e-6).to(dtype)
    zeros = torch.full_like(low, half) if symmetric else (-low / scales.float()).round().clamp(1, most)
    codes = (matrix / scales.float()[:, groups] + zeros[:, groups]).round().clamp(0, most)
    return Levels(bits, codes.long(), scales, zeros.long(), groups)


def words(codes: Tensor, bits: int) -> Tensor:
    """Codes as one stream of bits, the lowest first, in 32-bit words. [..., n] -> int32 [..., n · bits / 32]"""
    stream = codes[..., None] >> torch.arange(bits) & 1
    padded = torch.nn.functional.pad(stream.flatten(-2), (0, -codes.shape[-1] * bits % 32))
    each = (padded.unflatten(-1, (-1, 32)) << torch.arange(32)).sum(-1)
    return torch.where(each >= 1 << 31, each - (1 << 32), each).to(torch.int32)


def compressed(found: Levels, symmetric: bool) -> dict[str, Tensor]:
    """As compressed-tensors' pack-quantized."""
    parts = {
        "weight_packed": words(found.codes, found.bits),
        "weight_scale": found.scales,
        "weight_shape": torch.tensor(found.codes.shape),
    }
    return parts if symmetric else parts | {"weight_zero_point": words(found.zeros.T, found.bits).T}


def gptq(found: Levels, symmetric: bool) -> dict[str, Tensor]:
    """As GPTQ's version 1, with the group of each column."""
    return {
        "qweight": words(found.codes, found.bits).T,
        "qzeros": words(found.zeros.T - 1, found.bits),
        "scales": found.scales.T,
        "g_idx": found.groups.int(),
    }


def awq(found: Levels, symmetric: bool) -> dict[str, Tensor]:
    """As AWQ for gemm: eight rows in a word, the even ones first."""
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    codes, zeros = (each.T.unflatten(1, (-1, 8))[..., order].flatten(1) for each in (found.codes, found.zeros))
    return {"qweight": words(codes, 4), "qzeros": words(zeros, 4), "scales": found.scales.T}


def quark(found: Levels, symmetric: bool, in_order: bool = False) -> dict[str, Tensor]:
    """As Quark's uint4, or int4 without zero points: AWQ's order of eight rows, or one after the other."""
    order = torch.arange(8) if in_order else torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    signed = (found.codes - 8) % 16 if symmetric else found.codes
    codes, zeros = (each.T.unflatten(1, (-1, 8))[..., order].flatten(1) for each in (signed, found.zeros))
    parts = {"weight": words(codes, 4), "weight_scale": found.scales.T}
    return parts if symmetric else parts | {"weight_zero_point": words(zeros, 4)}


Pack = Callable[[Levels, bool], Mapping[str, Tensor]]


def save_integers(
    folder: Path,
    target: Path,
    pack: Pack,
    config: Mapping[str, Any],
    bits: int = 4,
    symmetric: bool = True,
    dtype: torch.dtype = torch.bfloat16,
    ordered: bool = False,
) -> tuple[Path, Path]:
    """The checkpoint in `folder` packed, and the same numbers in f32 -> two folders."""

    def pack_matrix(matrix: Tensor) -> tuple[Mapping[str, Tensor], Tensor]:
        found = levels_of(matrix, bits, symmetric, dtype, ordered)
        return pack(found, symmetric), found.numbers

    return save_packed(folder, target, pack_matrix, config)


def nf4(matrix: Tensor) -> tuple[Mapping[str, Tensor], Tensor]:
    """As bitsandbytes' NF4 without nested scales; and the numbers."""
    table = torch.tensor(NF4_VALUES)
    blocks = torch.nn.functional.pad(matrix.flatten(), (0, -matrix.numel() % 64)).unflatten(0, (-1, 64))
    largest = blocks.abs().amax(-1)
    codes = ((blocks / largest.clamp_min(1e-9)[:, None])[..., None] - table).abs().argmin(-1)
    numbers = (table[codes] * largest[:, None]).flatten()[: matrix.numel()].reshape(matrix.shape)
    pairs = codes.flatten()[: matrix.numel()].unflatten(0, (-1, 2))
    told = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": list(matrix.shape)})
    parts = {
        "weight": (pairs[:, :1] << 4 | pairs[:, 1:]).to(torch.uint8),
        "weight.absmax": largest,
        "weight.quant_map": table,
        "weight.quant_state.bitsandbytes__nf4": torch.tensor(list(told.encode()), dtype=torch.uint8),
    }
    return parts, numbers


def nvfp4(weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As NVFP4: codes, E4M3 scales and the scale of the whole, which multiplies; and the numbers."""
    whole = weights.abs().max().reshape(1) / (448 * 6)
    groups = weights.reshape(len(weights), -1, 16)
    scales = (groups.abs().amax(-1) / whole / 6).clamp_min(2**-9).to(torch.float8_e4m3fn)
    scaled = groups / (scales.float() * whole)[..., None]
    codes = (scaled.abs()[..., None] - torch.tensor(FP4)).abs().argmin(-1)
    numbers = torch.tensor(FP4)[codes] * scaled.sign() * scales.float()[..., None] * whole
    signed = (codes + 8 * (scaled < 0)).reshape(weights.shape).to(torch.uint8)
    return signed[:, ::2] | signed[:, 1::2] << 4, scales, whole, numbers.reshape(weights.shape)


def save_packed(
    folder: Path,
    target: Path,
    pack: Callable[[Tensor], tuple[Mapping[str, Tensor], Tensor]],
    config: Mapping[str, Any],
) -> tuple[Path, Path]:
    """Likewise, by a function that gives a matrix's parts and their numbers."""
    packed: dict[str, Tensor] = {}
    plain: dict[str, Tensor] = {}
    for name, values in load_file(folder / "model.safetensors").items():
        plain[name] = packed[name] = values
        fits = values.ndim == 2 and values.shape[1] % GROUP == 0 and values.shape[0] % ROWS == 0
        if fits and not any(part in name for part in LEFT):
            parts, plain[name] = pack(values.float())
            del packed[name]
            packed |= {name.removesuffix("weight") + kind: part.contiguous() for kind, part in parts.items()}
    assert len(packed) > len(plain), "nothing was packed"
    for path, tensors in ((target / "packed", packed), (target / "plain", plain)):
        shutil.copytree(folder, path)
        save_file(tensors, path / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text()) | {"quantization_config": dict(config)}
    (target / "packed" / "config.json").write_text(json.dumps(settings))
    return target / "packed", target / "plain"
