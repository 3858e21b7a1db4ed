"""Launches of recurrent layers: the rows of every text go on from its state and leave states where they are wanted.

All operands are f32 [rows, n].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localrun.backends.gpu.device import Argument, Device, Launch
from localrun.base.dataclass import dataclass

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv

SEQUENCES = 32  # of a step that are walked through side by side, at most
CHANNELS, CONV_ROWS = 128, 64  # of a block of threads of short_conv
COLUMNS, THREADS = 32, 128  # of one that has a part of a head's state
NORM_THREADS = 256


@dataclass(frozen=True, slots=True)
class LayerStates:
    """States of one layer, and those that the sequences of a step go on from and leave."""

    numbers: Tensor  # f32 [blocks, layers of the group, state_size]
    index: int  # of the layer
    group: int
    step: StepTensors

    @property
    def places(self) -> tuple[Argument, ...]:
        step, group = self.step, self.group
        return self.numbers, step.state_before[group], step.state_after[group], step.first_row, step.n_rows

    def sizes(self, state_at: int) -> tuple[int, int]:
        """Numbers of a block, and the first that is meant."""
        _, n_layers, size = self.numbers.shape
        return n_layers * size, self.index * size + state_at


def short_conv(device: Device, states: LayerStates, op: ShortConv, x: Tensor, out: Tensor) -> Launch:
    """The convolution of x -> out, f32 [rows, channels]"""
    rows, channels = out.shape
    grid = (-(-channels // CHANNELS), -(-rows // CONV_ROWS), min(rows, SEQUENCES))
    kernel = device.kernel("short_conv" + device.ending, "short_conv", TAPS=op.taps)
    flags = (int(op.gated), int(op.act == "silu"))
    arguments = (x, op.weight, op.bias, *states.places, out, rows, channels, *flags, *states.sizes(op.state_at))
    return kernel.bind(grid, (CHANNELS, 1, 1), *arguments)


def gated_delta_rule(
    device: Device,
    states: LayerStates,
    op: GatedDeltaRule,
    qkv: Tensor,
    alpha: Tensor,
    beta: Tensor,
    z: Tensor,
    out: Tensor,
) -> Iterator[Launch]:
    """The rule, then its norm -> out, f32 [rows, n_value_heads · value_dim]"""
    rows, heads, columns = len(out), op.n_value_heads, op.value_dim
    kernel = device.kernel("delta_rule" + device.ending, "delta_rule", KEYS=op.key_dim)
    operands = (qkv, alpha, beta, op.decay, op.dt_bias, *states.places, out)
    sizes = (rows, op.n_key_heads, heads, columns, int(op.tiled), *states.sizes(op.state_at))
    yield kernel.bind(head_grid(columns, heads, rows), (THREADS, 1, 1), *operands, *sizes)
    yield gated_norm(device, out, z, op.norm, columns, op.eps, gate_first=False)


def selective_scan(
    device: Device, states: LayerStates, op: SelectiveScan, xbc: Tensor, dt: Tensor, z: Tensor, out: Tensor
) -> Iterator[Launch]:
    """The scan, then its norm -> out, f32 [rows, n_heads · head_dim]"""
    rows, heads, columns = len(out), op.n_heads, op.head_dim
    kernel = device.kernel("selective_scan" + device.ending, "selective_scan", KEYS=op.state_dim)
    operands = (xbc, dt, op.decay, op.dt_bias, op.skip, *states.places, out)
    sizes = (rows, heads, op.n_groups, columns, *states.sizes(op.state_at))
    yield kernel.bind(head_grid(columns, heads, rows), (THREADS, 1, 1), *operands, *sizes)
    yield gated_norm(device, out, z, op.norm, out.shape[1] // op.n_groups, op.eps, gate_first=True)


def head_grid(columns: int, heads: int, rows: int) -> tuple[int, int, int]:
    return -(-columns // COLUMNS), heads, min(rows, SEQUENCES)


def gated_norm(
    device: Device, x: Tensor, z: Tensor, weight: Tensor, size: int, eps: float, *, gate_first: bool
) -> Launch:
    """x / rms(x) · weight · silu(z), or with `gate_first` g / rms(g) · weight of g = x · silu(z) -> x.

    Each `size` numbers of a row have a norm of their own.
    """
    rows, width = x.shape
    threads = min(NORM_THREADS, -(-size // 32) * 32)  # follows from `size` alone, as the order of its sums does
    kernel = device.kernel("gated_norm" + device.ending, "gated_norm")
    return kernel.bind(
        (rows, width // size, 1), (threads, 1, 1), x, z, weight, width, size, len(weight), int(gate_first), eps
    )
