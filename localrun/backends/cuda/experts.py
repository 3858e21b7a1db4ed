"""Launches of the kernels of a mixture's experts."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from localrun.backends.cuda.linears import STAGES, reads_q8
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.matrices import ACTIVATIONS, expert_arguments
from localrun.backends.gpu.mixture import ExpertTiles
from localrun.backends.gpu.mixture_memory import FEW
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.weight_layouts import CodeLayout, layout_of
from localrun.ops.instructions import LinearWeight
from localrun.ops.types import LinearActivation

STAGE_ROW_BYTES = 80 + 32  # of experts_many: 64 codes with a gap, two groups and those of a neighbour


def experts(
    device: Device,
    a: Tensor | None,
    q8: Q8 | None,
    rows: int,
    weights: Sequence[LinearWeight],
    out: Tensor,
    tiles: ExpertTiles,
    act: LinearActivation,
) -> list[Launch]:
    """act(scale · (row @ expert.T) + bias) for every pair of the tiles -> out, f32 [pairs, n_out].

    a: f32 [rows, n_in], read by layouts of floats; q8: the same quantised, read by the others. Pair p has row
    p · rows / pairs. With a gated activation the two weights are gate and up.
    """
    number = ACTIVATIONS.index(act)
    if len(weights) == 1:
        return [launch(device, a, q8, rows, weights, out, tiles, ACT=number)]
    gate, up = weights
    same = layout_of(gate.packed.qtype) == layout_of(up.packed.qtype)
    if same and reads_q8(gate.packed) and tiles.size == FEW:
        return [launch(device, a, q8, rows, [gate, up], out, tiles, SIDES=2, ACT=number)]
    waiting = launch(device, a, q8, rows, [gate], out, tiles)
    return [waiting, launch(device, a, q8, rows, [up], out, tiles, ACT=number)]


def launch(
    device: Device,
    a: Tensor | None,
    q8: Q8 | None,
    rows: int,
    weights: Sequence[LinearWeight],
    out: Tensor,
    tiles: ExpertTiles,
    **defines: int,
) -> Launch:
    """One launch for one matrix, or for a gate and an up of one layout."""
    n_out, first = out.shape[1], weights[0].packed
    layout, n_tiles = layout_of(first.qtype), -(-n_out // 16) + (n_out % 16 > 0)  # an expert may begin within a tile
    defines = {name: value for name, value in defines.items() if value} | layout.defines
    arguments = expert_arguments(weights)
    arguments += [out, n_out, tiles.n_experts, tiles.experts, tiles.pairs, len(out) // rows]
    if not isinstance(layout, CodeLayout):
        kernel = device.kernel("experts_float.cu", "experts_float", **defines)
        return kernel.bind((n_tiles, len(tiles.experts), 1), (256, 1, 1), *arguments, a, first.n_cols)
    assert q8 is not None, f"weights of {first.qtype} read quantised activations"
    arguments += [q8.codes, q8.groups, q8.codes.shape[1] // 64, q8.groups.shape[1]]
    if tiles.size == FEW:
        kernel, threads = device.kernel("experts.cu", "experts", **defines), 256 * len(weights)
        return kernel.bind((n_tiles, len(tiles.experts), 1), (threads, 1, 1), *arguments)
    kernel = device.kernel("experts_many.cu", "experts_many", N_X=tiles.size, **defines)
    grid = (-(-n_tiles // 4), len(tiles.experts), 1)
    return kernel.bind(grid, (128, 1, 1), *arguments, shared=STAGES * tiles.size * STAGE_ROW_BYTES)
