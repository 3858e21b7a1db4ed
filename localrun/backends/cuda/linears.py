"""Launches of the kernels that read weights: linear, decoding.

Which kernel runs depends on the number of rows alone; all give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from localrun.backends.gpu.device import Argument, Device, Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, MATRICES, GpuMatrix, blocks, by_layout, matrix_arguments
from localrun.backends.gpu.q8 import Q8, q8_arguments
from localrun.backends.gpu.weight_layouts import MIXED, CodeLayout, layout_of, mixed_defines
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

ONE_PASS_ROWS = 8  # more want the kernel for many
GATED = ("silu_mul", "gelu_mul", "clamped_silu_mul")
BUSY = (90, 100, 103)  # H100, B200: by count a processor has less under way than its share of the memory's speed
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
        groups = [*by_layout(weights, outs)]
        if q8 is not None and rows <= ONE_PASS_ROWS and are_mixed(groups):
            return [mixed(device, q8, groups, rows, *ending)]
        return [launch(device, a, q8, matrices, rows, *ending) for matrices in groups]
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
    arguments += row_arguments(q8, rows, residual, out_scale)
    if rows <= ONE_PASS_ROWS:
        kernel = device.kernel("linear.cu", "linear", **defines)
        return kernel.bind((blocks(with_blocks, 16), 1, 1), (256 * sides, 1, 1), *arguments)
    n_x = 16 if rows <= 16 else 32 if rows <= 32 else 64
    kernel = device.kernel("linear_many.cu", "linear_many", N_X=n_x, **defines)
    grid = (blocks(with_blocks, 64), -(-rows // n_x), 1)
    return kernel.bind(grid, (128, 1, 1), *arguments, shared=STAGES * n_x * STAGE_ROW_BYTES)


def can_quantize(device: Device, weights: Sequence[LinearWeight], act: LinearActivation, rows: int) -> bool:
    """Whether one launch computes a gate beside an up and quantises the result: not on GPUs whose memory keeps all
    processors busy, for blocks are then twice as long, and the last of them leave more processors idle."""
    if act not in GATED or rows > ONE_PASS_ROWS or device.arch in BUSY:
        return False
    gate, up = (layout_of(weight.packed.qtype) for weight in weights)
    return gate == up and isinstance(gate, CodeLayout)


def gate_beside_up(
    device: Device, q8: Q8, weights: Sequence[LinearWeight], out: Tensor, made: Q8, act: LinearActivation
) -> Launch:
    """act(gate) · up -> out, f32 [rows, n_out], and the same quantised -> made, in one launch (see can_quantize)."""
    defines = layout_of(weights[0].packed.qtype).defines | {"SIDES": 2, "ACT": ACTIVATIONS.index(act)}
    kernel, grid = device.kernel("linear_gate.cu", "linear_gate", **defines), (made.codes.shape[1] // 32, 1, 1)
    sizes = (q8.codes.shape[1] // 64, len(out), q8.groups.shape[1])
    arguments = (*matrix_arguments([(weight, out) for weight in weights]), q8.codes, q8.groups, *sizes)
    return kernel.bind(grid, (512, 1, 1), *arguments, *q8_arguments(made))


def are_mixed(groups: Sequence[Sequence[GpuMatrix]]) -> bool:
    """Whether a launch takes matrices of two layouts together."""
    names = tuple(layout_of(group[0][0].packed.qtype).name for group in groups)
    return names in MIXED and sum(map(len, groups)) <= MATRICES


def mixed(
    device: Device,
    q8: Q8,
    groups: Sequence[Sequence[GpuMatrix]],
    rows: int,
    residual: Tensor | None,
    out_scale: float,
) -> Launch:
    """One launch for matrices of two layouts, at most ONE_PASS_ROWS rows."""
    layouts = [layout_of(group[0][0].packed.qtype) for group in groups]
    kernel = device.kernel("linear_mixed.cu", "linear_mixed", **mixed_defines(*layouts))
    first_blocks, matrices = blocks(groups[0], 16), [*groups[0], *groups[1]]
    arguments = (*matrix_arguments(matrices), *row_arguments(q8, rows, residual, out_scale), first_blocks)
    return kernel.bind((blocks(matrices, 16), 1, 1), (256, 1, 1), *arguments)


def row_arguments(q8: Q8, rows: int, residual: Tensor | None, out_scale: float) -> tuple[Argument, ...]:
    """Rows of x, and what is done to sums."""
    return q8.codes, q8.groups, residual, float(out_scale), q8.codes.shape[1] // 64, rows, q8.groups.shape[1]


def dequantize(device: Device, weight: Packed, out: Tensor) -> Launch:
    """A quantised matrix -> out, bf16 [n_rows, n_cols]."""
    kernel = device.kernel("dequantize.cu", "dequantize", **layout_of(weight.qtype).defines)
    grid = (-(-weight.n_cols // 512), -(-weight.n_rows // 16), 1)
    return kernel.bind(grid, (256, 1, 1), weight.planes[0], out, weight.n_rows, weight.n_cols)
