"""Matrices as launches take them: several of one layout together. What linears of all platforms share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from torch import Tensor

from localrun.backends.gpu.device import Argument, Device, Launch
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

GpuMatrix: TypeAlias = tuple[LinearWeight, Tensor]  # a weight, and where its result goes, f32 [rows, n_out]

MATRICES = 3  # of a launch
ACTIVATIONS: tuple[LinearActivation, ...] = ("none", "silu_mul", "gelu_mul", "clamped_silu_mul", "relu_squared")


def by_layout(weights: Sequence[LinearWeight], outs: Sequence[Tensor]) -> Iterator[list[GpuMatrix]]:
    """All of them, as many together as a launch takes, each time of one layout."""
    pairs = sorted(zip(weights, outs, strict=True), key=lambda pair: layout_of(pair[0].packed.qtype).name)
    for _, same in groupby(pairs, key=lambda pair: layout_of(pair[0].packed.qtype)):
        of_layout = list(same)
        for first in range(0, len(of_layout), MATRICES):
            yield of_layout[first : first + MATRICES]


def matrix_arguments(matrices: Sequence[GpuMatrix]) -> list[Argument]:
    """Arguments for each matrix, and for those that a launch does not use."""
    found: list[Argument] = []
    for weight, out in matrices:
        found += weight.packed.planes[0], weight.bias, out, float(weight.scale), weight.packed.n_rows
    return found + [None, None, None, 1.0, 0] * (MATRICES - len(matrices))


def expert_arguments(weights: Sequence[LinearWeight]) -> list[Argument]:
    """Arguments for one or two matrices of all experts: the matrix, biases, scales, or the scale that all share."""
    found: list[Argument] = []
    for weight in weights:
        scale = weight.scale
        scales = (scale, 1.0) if isinstance(scale, Tensor) else (None, float(scale))
        found += weight.packed.planes[0], weight.bias, *scales
    return found + [None, None, None, 1.0] * (2 - len(weights))


def blocks(matrices: Sequence[GpuMatrix], rows: int) -> int:
    """Thread blocks with this many rows of a matrix each; none has rows of two matrices."""
    return sum(-(-weight.packed.n_rows // rows) for weight, _ in matrices)


def embed(device: Device, weight: Packed, ids: Tensor, scale: float, out: Tensor, rows: int) -> Launch:
    """The rows of `weight` at `ids`, int32 [rows], times `scale` -> out, f32 [rows, n_cols]."""
    kernel = device.kernel("embed" + device.ending, "embed", **layout_of(weight.qtype).defines)
    grid = (-(-weight.n_cols // 1024), rows, 1)
    return kernel.bind(grid, (64, 1, 1), weight.planes[0], ids, float(scale), out, weight.n_rows, weight.n_cols)
