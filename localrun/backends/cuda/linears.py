"""Launches of the kernels that read weights: linear, decoding.

Which kernel runs depends on the number of rows alone; all give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, GpuMatrix, blocks, by_layout, matrix_arguments
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.weight_layouts import CodeLayout, layout_of
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

ONE_PASS_ROWS = 8  # more want the kernel for many
STAGES, STAGE_ROW_BYTES = 3, 80 + 16  # of linear_many: 64 codes with a gap, two groups


def reads_q8(packed: Packed) -> bool:
    """Whether a linear with this matrix reads quantised activations; else it reads f32."""
    return isinstance(layout_of(packed.qtype), CodeLayout)


def linear(
    device: Device,
    a: Tensor | None,
    q8: Q8 | None,
    weights: Sequence[LinearWeight],
    outs: Sequence[Tensor],
    rows: int,
    *,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
) -> list[Launch]:
    """residual + out_scale · (scale · (a @ W.T) + bias) for every weight -> outs, f32 [rows, n_out].

    a: f32 [rows, n_in], read by layouts of floats; q8: the same quantised, read by the others. With a gated activation
    the two weights are gate and up, and the one out is residual + out_scale · act(gate) · up; relu_squared has one
    weight. An out may be the residual, but not with a gated activation.
    """
    ending = (residual, out_scale)
    number = ACTIVATIONS.index(act)
    if act == "relu_squared":
        return [launch(device, a, q8, list(zip(weights, outs, strict=True)), rows, *ending, ACT=number)]
    if act == "none":
        return [launch(device, a, q8, matrices, rows, *ending) for matrices in by_layout(weights, outs)]
    (gate, up), (out,) = weights, outs
    same = layout_of(gate.packed.qtype) == layout_of(up.packed.qtype)
    if same and reads_q8(gate.packed) and rows <= ONE_PASS_ROWS:
        return [launch(device, a, q8, [(gate, out), (up, out)], rows, *ending, SIDES=2, ACT=number)]
    waiting = launch(device, a, q8, [(gate, out)], rows, None, 1.0)
    return [waiting, launch(device, a, q8, [(up, out)], rows, *ending, ACT=number)]


def launch(
    device: Device,
    a: Tensor | None,
    q8: Q8 | None,
    matrices: Sequence[GpuMatrix],
    rows: int,
    residual: Tensor | None,
    out_scale: float,
    **defines: int,
) -> Launch:
    """One launch for matrices of one layout."""
    first = matrices[0][0].packed
    layout, n_cols = layout_of(first.qtype), first.n_cols
    arguments, sides = matrix_arguments(matrices), defines.get("SIDES", 1)
    with_blocks = matrices[:1] if sides == 2 else matrices  # those of a gate have those of the up beside them
    defines |= layout.defines
    if not isinstance(layout, CodeLayout):
        kernel = device.kernel("linear_float.cu", "linear_float", **defines)
        grid = (blocks(with_blocks, 16), -(-rows // 8), 1)
        return kernel.bind(grid, (256, 1, 1), *arguments, a, residual, float(out_scale), n_cols, rows)
    assert q8 is not None, f"weights of {first.qtype} read quantised activations"
    n_tiles, padded_rows = q8.codes.shape[1] // 64, q8.groups.shape[1]
    arguments += [q8.codes, q8.groups, residual, float(out_scale), n_tiles, rows, padded_rows]
    if rows <= ONE_PASS_ROWS:
        kernel = device.kernel("linear.cu", "linear", **defines)
        return kernel.bind((blocks(with_blocks, 16), 1, 1), (256 * sides, 1, 1), *arguments)
    n_x = 16 if rows <= 16 else 32 if rows <= 32 else 64
    kernel = device.kernel("linear_many.cu", "linear_many", N_X=n_x, **defines)
    grid = (blocks(with_blocks, 64), -(-rows // n_x), 1)
    return kernel.bind(grid, (128, 1, 1), *arguments, shared=STAGES * n_x * STAGE_ROW_BYTES)


def dequantize(device: Device, weight: Packed, out: Tensor) -> Launch:
    """A quantised matrix -> out, bf16 [n_rows, n_cols]."""
    kernel = device.kernel("dequantize.cu", "dequantize", **layout_of(weight.qtype).defines)
    grid = (-(-weight.n_cols // 512), -(-weight.n_rows // 16), 1)
    return kernel.bind(grid, (256, 1, 1), weight.planes[0], out, weight.n_rows, weight.n_cols)
