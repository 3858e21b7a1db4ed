"""A small case of each kernel of recurrent layers, beside the reference in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from localrun.backends.gpu import elementwise, recurrent
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.recurrent import LayerStates
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape
from localrun.backends.gpu.synthetic import between_ones, far
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Xielu
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv

Recurrence: TypeAlias = ShortConv | GatedDeltaRule | SelectiveScan
LAYER, STATE_AT = 1, 5  # that a case is of, and numbers of its state that are another instruction's
ROWS_OF = {
    ShortConv: ("x",),
    GatedDeltaRule: ("qkv", "z", "alpha", "beta"),
    SelectiveScan: ("xbc", "z", "dt"),
}


def numbers(*shapes: tuple[int, ...]) -> Iterator[Tensor]:
    """f32 of these shapes from -1 to 1, of which none are alike."""
    sizes = [math.prod(shape) for shape in shapes]
    for part, shape in zip(between_ones(sum(sizes)).split(sizes), shapes, strict=True):
        yield part.view(shape)


def conv(rows: int, channels: int, taps: int = 4, *, gated: bool = False) -> ShortConv:
    """A convolution with a bias and silu, or with gates."""
    x, weight, bias = numbers((rows, channels * (3 if gated else 1)), (channels * taps,), (channels,))
    if gated:
        return ShortConv(x, weight, taps, LAYER, STATE_AT, gated=True)
    return ShortConv(x, weight, taps, LAYER, STATE_AT, bias, "silu")


def rule(rows: int, heads: tuple[int, int], dims: tuple[int, int], *, tiled: bool = False) -> GatedDeltaRule:
    """heads, dims: of keys, of values"""
    (n_keys, n_values), (key_dim, value_dim) = heads, dims
    rows_of = (2 * n_keys * key_dim + n_values * value_dim, n_values * value_dim, n_values, n_values)
    made = numbers(*((rows, n) for n in rows_of), (n_values,), (n_values,), (value_dim,))
    qkv, z, alpha, beta, decay, dt_bias, norm = made
    gates = (3 * z, 6 * alpha, 3 * beta, -(decay.abs() + 0.01), 4 * dt_bias, norm + 1.5)
    return GatedDeltaRule(qkv, *gates, 1e-6, *heads, *dims, tiled, LAYER, STATE_AT)


def scan(rows: int, n_heads: int, head_dim: int, n_groups: int, state_dim: int) -> SelectiveScan:
    width = n_heads * head_dim
    rows_of, of_heads = (width + 2 * n_groups * state_dim, width, n_heads), (n_heads,)
    made = numbers(*((rows, n) for n in rows_of), of_heads, of_heads, of_heads, (width,))
    xbc, z, dt, decay, dt_bias, skip, norm = made
    weights = (-(decay.abs() + 0.01), 4 * dt_bias, skip, norm + 1.5)
    return SelectiveScan(xbc, 3 * z, 6 * dt, *weights, 1e-6, n_heads, head_dim, n_groups, state_dim, LAYER, STATE_AT)


def state_numbers(op: Recurrence) -> int:
    """Numbers of an instruction's state."""
    if isinstance(op, ShortConv):
        return (op.taps - 1) * len(op.weight) // op.taps
    if isinstance(op, GatedDeltaRule):
        return op.n_value_heads * op.key_dim * op.value_dim
    return op.n_heads * op.head_dim * op.state_dim


def width_of(op: Recurrence) -> int:
    """Numbers of a row of its result."""
    return len(op.weight) // op.taps if isinstance(op, ShortConv) else op.z.shape[1]


def changed(op: Recurrence, change: Callable[[Tensor], Tensor], names: Sequence[str] = ()) -> Recurrence:
    """An instruction with other tensors: all, or those of the operands that are named."""
    operands = {each.name: getattr(op, each.name) for each in fields(op) if not names or each.name in names}
    tensors: dict[str, Any] = {name: change(x) for name, x in operands.items() if isinstance(x, Tensor)}
    return replace(op, **tensors)


def step_of(texts: Sequence[tuple[int, int]], taken: int = 0) -> StepInput:
    """The last rows of texts, each (length, rows): those of a text that has others before go on from the state in the
    block of the last of these. Blocks are numbered from `taken` on."""
    sequences: list[SequenceInput] = []
    positions: list[int] = []
    row_sequence: list[int] = []
    for number, (length, n) in enumerate(texts):
        blocks = range(taken, taken + -(-length // BLOCK_TOKENS))
        start = length - n
        state = blocks[(start - 1) // BLOCK_TOKENS] if start else -1
        sequences.append(SequenceInput(length, (blocks,), (0,), state=(state,)))
        positions += range(start, length)
        row_sequence += [number] * n
        taken += len(blocks)
    return StepInput([0] * len(positions), positions, row_sequence, sequences, [0])


def pool_of(op: Recurrence, n_blocks: int) -> KVPool:
    """States of two layers, on the processor, all with numbers."""
    size = STATE_AT + state_numbers(op) + 3
    layers = [CacheLayer(0, index, 1, 0, 0, state_size=size) for index in range(2)]
    pool = KVPool(layers, KVPlan.uniform(KV_CODECS["f32"], 2), [n_blocks], [0], torch.device("cpu"))
    states = pool.states(LAYER).states
    states.copy_(between_ones(*states.shape))
    return pool


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A step's tensors and the states of a pool there."""

    device: Device
    states: LayerStates
    rows: int

    @classmethod
    def of(cls, device: Device, step: StepInput, pool: KVPool, rows: int) -> OnDevice:
        n_table = sum(len(sequence.table[0]) for sequence in step.sequences)
        buffer = StepBuffer(StepShape(1, (), sinks=False, states=True), rows, n_table, device)
        buffer.fill(step, rows)
        there = pool.states(LAYER).states.to(device.torch_device, copy=True)
        return cls(device, LayerStates(there, LAYER, 0, buffer.tensors(rows)), rows)

    def compute(self, op: Recurrence) -> Tensor:
        """f32 [rows of op, n]; rows of padding are of NaN before, and may become what they like."""

        def padded(x: Tensor) -> Tensor:
            return torch.cat((x, x.new_full((self.rows - len(x), x.shape[1]), torch.nan)))

        n, where = len(getattr(op, ROWS_OF[type(op)][0])), self.device.torch_device
        op = changed(changed(op, padded, ROWS_OF[type(op)]), lambda x: x.to(where))
        out = torch.full((self.rows, width_of(op)), torch.nan, device=where)
        for launch in self.launches(op, out):
            launch()
        return out[:n]

    def launches(self, op: Recurrence, out: Tensor) -> Iterator[Launch]:
        if isinstance(op, ShortConv):
            yield recurrent.short_conv(self.device, self.states, op, op.x, out)
        elif isinstance(op, GatedDeltaRule):
            yield from recurrent.gated_delta_rule(self.device, self.states, op, op.qkv, op.alpha, op.beta, op.z, out)
        else:
            yield from recurrent.selective_scan(self.device, self.states, op, op.xbc, op.dt, op.z, out)


TEXTS = ((70, 9), (3, 3))  # over the end of a block, and from the beginning


def compared(device: Device, op: Recurrence, texts: Sequence[tuple[int, int]] = TEXTS, padding: int = 4) -> str:
    """Whether results and states are those of the reference."""
    step, pool = step_of(texts), pool_of(op, sum(-(-length // BLOCK_TOKENS) for length, _ in texts))
    there = OnDevice.of(device, step, pool, step.n_rows + padding)
    found = there.compute(op)
    reference = ReferenceOps(pool, torch.device("cpu"))
    reference.begin(step)
    (exact,) = getattr(reference, op.name)(changed(op, Tensor.double))
    return far(op.name, found, exact) or far("states", there.states.numbers, pool.states(LAYER).states.double())


def short_conv(device: Device) -> str:
    found = [compared(device, op) for op in (conv(12, 140), conv(12, 20, taps=3, gated=True))]
    return "".join(found)


def gated_delta_rule(device: Device) -> str:
    return compared(device, rule(12, (2, 4), (24, 40)))


def selective_scan(device: Device) -> str:
    return compared(device, scan(12, 4, 40, 2, 24))


def xielu(device: Device) -> str:
    x = 4 * between_ones(2, 300)
    there = x.to(device.torch_device)
    op, out = Xielu(x.double(), 0.8, 1.3, 0.5, -1e-6), torch.zeros_like(there)
    elementwise.xielu(device, op, there, out)()
    (exact,) = ReferenceOps.xielu(None, op)  # type: ignore[arg-type]  # which needs nothing of it
    return far("xielu", out, exact)


CASES: Mapping[str, Callable[[Device], str]] = {
    "short convolution": short_conv,
    "delta rule": gated_delta_rule,
    "selective scan": selective_scan,
    "xielu": xielu,
}
