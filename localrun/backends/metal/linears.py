"""Launches of the Metal kernels of linears.

Activations stay f32. Which kernel runs depends on the number of rows alone; all give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from torch import Tensor

from localrun.backends.gpu.device import Argument, Device, Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, GpuMatrix, blocks, by_layout, matrix_arguments
from localrun.backends.gpu.scratch import power_of_two
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.ops.instructions import LinearWeight
from localrun.ops.types import LinearActivation

NormWeight: TypeAlias = tuple[Tensor, float]  # f32 [n_in], epsilon

ONE_PASS_ROWS = 8  # more want the kernel for many


class MatrixDevice(Device, Protocol):
    """A device that knows how it multiplies matrices."""

    @property
    def exact_matrices(self) -> bool:
        """Whether its product of 8 x 8 matrices is a chain of fma in ascending order, as the self-test found."""
        ...


def linear(
    device: MatrixDevice,
    x: Tensor,
    weights: Sequence[LinearWeight],
    outs: Sequence[Tensor],
    rows: int,
    *,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
    norm: NormWeight | None = None,
) -> list[Launch]:
    """residual + out_scale · (scale · (x @ W.T) + bias) for every weight -> outs, f32 [rows, n_out].

    x: f32 [rows, n_in]; with `norm` it is read through an RMS norm, to the bits of a norm before: that is for up to
    ONE_PASS_ROWS. With a gated activation the two weights are gate and up, and the one out is residual + out_scale ·
    act(gate) · up; relu_squared has one weight. An out may be the residual, but not with a gated activation.
    """
    ending = (residual, out_scale, norm)
    number = ACTIVATIONS.index(act)
    if act == "relu_squared":
        return [launch(device, x, list(zip(weights, outs, strict=True)), rows, *ending, ACT=number)]
    if act == "none":
        return [launch(device, x, matrices, rows, *ending) for matrices in by_layout(weights, outs)]
    (gate, up), (out,) = weights, outs
    if layout_of(gate.packed.qtype) == layout_of(up.packed.qtype) and rows <= ONE_PASS_ROWS:
        return [launch(device, x, [(gate, out), (up, out)], rows, *ending, SIDES=2, ACT=number)]
    waiting = launch(device, x, [(gate, out)], rows, None, 1.0, norm)
    return [waiting, launch(device, x, [(up, out)], rows, *ending, ACT=number)]


def launch(
    device: MatrixDevice,
    x: Tensor,
    matrices: Sequence[GpuMatrix],
    rows: int,
    residual: Tensor | None,
    out_scale: float,
    norm: NormWeight | None,
    **defines: int,
) -> Launch:
    """One launch for matrices of one layout."""
    if rows > ONE_PASS_ROWS:
        assert norm is None, "many rows are read as they are"
        matrix = int(device.exact_matrices)
        return many(device, x, matrices, rows, residual, out_scale, MATRIX=matrix, **defines)
    sides = defines.get("SIDES", 1)
    gain, eps = norm or (None, 0.0)
    layout = layout_of(matrices[0][0].packed.qtype)
    defines |= {"N_X": power_of_two(rows), "NORM": int(norm is not None), **layout.defines}
    arguments = (*matrix_arguments(matrices), *row_arguments(x, residual, out_scale, rows), gain, float(eps))
    grid = (blocks(matrices[:1] if sides == 2 else matrices, 32 // sides), 1, 1)
    return device.kernel("linear.metal", "linear", **defines).bind(grid, (256, 1, 1), *arguments)


def many(
    device: Device,
    x: Tensor,
    matrices: Sequence[GpuMatrix],
    rows: int,
    residual: Tensor | None,
    out_scale: float,
    **defines: int,
) -> Launch:
    """Likewise, for any number of rows. MATRIX: 1 by products of 8 x 8 matrices."""
    n_x = 16 if rows <= 16 else 32
    defines |= {"N_X": n_x, **layout_of(matrices[0][0].packed.qtype).defines}
    arguments = (*matrix_arguments(matrices), *row_arguments(x, residual, out_scale, rows))
    grid = (-(-rows // n_x), blocks(matrices, 64), 1)  # threadgroups that read the same weights are neighbours
    return device.kernel("linear_many.metal", "linear_many", **defines).bind(grid, (128, 1, 1), *arguments)


def row_arguments(x: Tensor, residual: Tensor | None, out_scale: float, rows: int) -> tuple[Argument, ...]:
    return x, residual, float(out_scale), x.shape[-1], rows
