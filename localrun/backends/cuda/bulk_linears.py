"""Launches of linears that read a prompt in bulk: every weight is decoded once for all rows of a step.

Products have one shape: a row at position p is row p modulo the span of a product of exactly that many rows. So what a
library does by the shape is the same for a row whichever chunk it came in, and its result depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from localrun.backends.cuda.bulk import bulk_numbers
from localrun.backends.cuda.linears import dequantize, reads_q8
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.matrices import ACTIVATIONS
from localrun.backends.gpu.supports import gathers
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Linear, LinearWeight
from localrun.ops.types import LinearActivation

THREADS = 256  # of a block, each with one sum or four numbers
GATED = ("silu_mul", "gelu_mul", "clamped_silu_mul")


class Multiplies(Device, Protocol):
    """A device with a library of products."""

    def bf16_product(self, a: Tensor, b: Tensor, out: Tensor) -> Launch:
        """a @ b.T -> out, all bf16, summed in float32.

        A row of `out` depends on its row of `a`, on where that is, and on the shapes, whatever the other rows hold.
        """
        ...


def reads_in_bulk(op: Linear) -> bool:
    """Whether a linear has a second way to read rows: matrices of floats have not."""
    return not gathers(op) and all(reads_q8(weight.packed) for weight in op.weights)


@dataclass(frozen=True, slots=True)
class BulkMemory:
    """Buffers that one linear after the other uses; bf16, flat."""

    x: Tensor  # of all rows
    weights: Tensor  # of all matrices of a linear
    sums: Tensor  # of a span

    @classmethod
    def of(cls, linears: Sequence[Linear], rows: int, span: int, device: torch.device) -> BulkMemory:
        """Room for the largest of these."""
        sizes = bulk_numbers(linears, rows, span)
        return cls(*(torch.zeros(size, dtype=torch.bfloat16, device=device) for size in sizes))

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.weights.nbytes + self.sums.nbytes


def linear(
    device: Multiplies,
    memory: BulkMemory,
    x: Tensor,
    weights: Sequence[LinearWeight],
    outs: Sequence[Tensor],
    span: int,
    *,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
) -> Iterator[Launch]:
    """Compute linears.linear of x, f32 [whole spans, n_in], by way of bf16: numbers, weights and sums."""
    rows, n_in = x.shape
    n_outs = [weight.packed.n_rows for weight in weights]
    width, firsts = sum(n_outs), [sum(n_outs[:index]) for index in range(len(n_outs))]
    numbers, decoded = memory.x[: rows * n_in].view(rows, n_in), memory.weights[: width * n_in].view(width, n_in)
    sums = memory.sums[: span * width].view(span, width)
    kernel = device.kernel("linear_bf16.cu", "to_bf16")
    yield kernel.bind((-(-n_in // (4 * THREADS)), rows, 1), (THREADS, 1, 1), x, numbers, n_in)
    for weight, first in zip(weights, firsts, strict=True):
        yield dequantize(device, weight.packed, decoded[first : first + weight.packed.n_rows])
    gated = act in GATED
    number = {"ACT": ACTIVATIONS.index(act)} if act != "none" else {}
    store = device.kernel("linear_bf16.cu", "store_sums", **number)
    of_gate = (weights[0].bias, float(weights[0].scale)) if gated else (None, 1.0)
    for at in range(0, rows, span):
        yield device.bf16_product(numbers[at : at + span], decoded, sums)
        rest = None if residual is None else residual[at : at + span]
        for weight, first, out in zip(weights[gated:], firsts[gated:], outs, strict=True):
            n_out = out.shape[1]
            yield store.bind(
                (-(-n_out // THREADS), span, 1),
                (THREADS, 1, 1),
                *(sums, weight.bias, float(weight.scale), *of_gate, rest),
                *(out[at : at + span], float(out_scale), n_out, width, first, 0),
            )
