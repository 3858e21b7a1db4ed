"""From recorded instructions to launches on fixed buffers, for one bucket of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from localrun.backends.cuda import attentions, elementwise, linears, norms
from localrun.backends.cuda.buffers import Buffer
from localrun.backends.cuda.device import Device, Launch
from localrun.backends.cuda.step_tensors import StepTensors
from localrun.backends.reference.ops import ReferenceOps
from localrun.ops.instructions import (
    Attention,
    Embed,
    GeluMul,
    Instruction,
    Linear,
    Norm,
    RopeAppend,
    Scale,
    SigmoidMul,
    Slot,
)
from localrun.ops.interface import CacheLayer
from localrun.ops.kv import KVCodec
from localrun.ops.layouts import MAPPED
from localrun.ops.program import Recorded


@dataclass(frozen=True, slots=True)
class Bucket:
    """What launches are bound to: so many rows, padding included, and texts of at most so many units of 512 tokens."""

    rows: int
    n_units: int
    n_alone: int = 0  # rows of a large step that share their keys with few others, rounded up


class Translator:
    """A method for each instruction that has kernels; torch computes the others, by the reference operations."""

    def __init__(
        self,
        device: Device,
        buffers: Mapping[int, Buffer],
        layers: Sequence[CacheLayer],
        codecs: Sequence[KVCodec],
        reference: ReferenceOps,
    ) -> None:
        self.device, self.buffers, self.layers, self.codecs = device, buffers, layers, codecs
        self.reference = reference
        self.partial = torch.empty(0, device=device.torch_device)  # scratch memory of attention

    def reserve_partial(self, bucket: Bucket) -> bool:
        """Make sure that attention finds its scratch memory -> whether there is another one now."""
        shapes = {(place.n_heads, place.n_kv_heads, place.head_dim) for place in self.layers}
        n = max(attentions.partial_numbers(bucket.rows, bucket.n_units, *shape) for shape in shapes)
        if n <= len(self.partial):
            return False
        self.partial = torch.empty(n, device=self.device.torch_device)
        return True

    def launches(self, recorded: Sequence[Recorded], bucket: Bucket, step: StepTensors) -> list[Launch]:
        """What the instructions come to, in order."""
        self.bucket, self.step = bucket, step
        self.quantized = set[int]()  # slots whose quantised form has been made
        made: list[Launch] = []
        for each in recorded:
            if has_kernels(each.instruction, self.layers, self.codecs):
                made += getattr(self, each.instruction.name)(each.instruction, *each.results)
            else:
                made.append(self.by_torch(each))
        return made

    def embed(self, op: Embed, out: int) -> Iterator[Launch]:
        ids, rows = self.step.token_ids, self.bucket.rows
        yield linears.embed(self.device, op.weight, ids, op.scale, self.x(out), rows)

    def norm(self, op: Norm, out: int) -> Iterator[Launch]:
        self.quantized.add(out)
        made = self.buffers[out]
        plain = self.x(out) if made.form.plain else None
        rest = None if op.residual is None else self.x(op.residual)
        yield norms.norm(
            self.device,
            self.x(op.x),
            op.weight,
            op.eps,
            self.bucket.rows,
            residual=rest,
            out=plain,
            q8=made.q8(self.bucket.rows),
        )

    def linear(self, op: Linear, *out: int) -> Iterator[Launch]:
        read, rows = self.buffers[op.a.index], self.bucket.rows
        q8 = read.q8(rows)
        if q8 is not None and op.a.index not in self.quantized:
            self.quantized.add(op.a.index)
            yield norms.quantize(self.device, self.x(op.a), rows, q8)
        yield from linears.linear(
            self.device,
            self.x(op.a) if read.form.plain else None,
            q8,
            op.weights,
            [self.x(slot) for slot in out],
            rows,
            residual=None if op.residual is None else self.x(op.residual),
            out_scale=op.out_scale,
            act=op.act,
        )

    def rope_append(self, op: RopeAppend, *out: int) -> Iterator[Launch]:
        place = self.layers[op.layer]
        store = self.reference.pool.store(place.group, ring=False)
        k, v = (None if slot is None else self.x(slot) for slot in (op.k, op.v))
        made = [self.x(slot) for slot in out]
        yield attentions.rope_append(
            self.device,
            self.step,
            op,
            place,
            self.x(op.q),
            k,
            v,
            store.keys.codes,
            store.values.codes,
            made[0],
            made[1] if op.sink_query else None,
            self.bucket.rows,
        )

    def attention(self, op: Attention, out: int) -> Iterator[Launch]:
        place = self.layers[op.layer]
        store = self.reference.pool.store(place.group, ring=False)
        yield from attentions.attend(
            self.device,
            self.step,
            op,
            place,
            self.x(op.q),
            None if op.sink_query is None else self.x(op.sink_query),
            store.keys.codes,
            store.values.codes,
            self.x(out),
            self.bucket.rows,
            self.bucket.n_units,
            self.partial,
            self.bucket.n_alone,
        )

    def sigmoid_mul(self, op: SigmoidMul, out: int) -> Iterator[Launch]:
        yield elementwise.sigmoid_mul(self.device, self.x(op.x), self.x(op.gate), self.x(out))

    def gelu_mul(self, op: GeluMul, out: int) -> Iterator[Launch]:
        yield elementwise.gelu_mul(self.device, self.x(op.gate), self.x(op.x), op.first, self.x(out))

    def scale(self, op: Scale, out: int) -> Iterator[Launch]:
        yield elementwise.scale(self.device, self.x(op.x), op.factor, self.x(out))

    def by_torch(self, recorded: Recorded) -> Launch:
        """The reference operation on the rows that are there, its results copied to where kernels find them."""
        op = recorded.instruction
        compute: Callable[[Instruction], Sequence[Tensor]] = getattr(self.reference, op.name)

        def launch() -> None:
            n = self.reference.step.n_rows
            operands = {name: self.operand(op, name, slot, n) for name, slot in recorded.reads.items()}
            results = compute(replace(op, **operands))  # type: ignore[arg-type]  # each has fields of its own
            for slot, result in zip(recorded.results, results, strict=True):
                self.buffers[slot].x(n).copy_(result.flatten(1))

        return launch

    def operand(self, op: Instruction, name: str, slot: int, n_rows: int) -> Tensor:
        x = self.buffers[slot].x(n_rows)
        return x.unflatten(1, (self.layers[op.layer].n_heads, -1)) if isinstance(op, Attention) else x

    def x(self, slot: Slot | int) -> Tensor:
        """f32 [rows of the bucket, width]"""
        return self.buffers[slot.index if isinstance(slot, Slot) else slot].x(self.bucket.rows)


def has_kernels(op: Instruction, layers: Sequence[CacheLayer], codecs: Sequence[KVCodec]) -> bool:
    """Whether kernels of ours compute an instruction."""
    if isinstance(op, RopeAppend | Attention):
        place, codec = layers[op.layer], codecs[op.layer]
        return codec.native and place.value_dim is None and attentions.has_head_dim(place.head_dim)
    if isinstance(op, Embed):
        return op.weight.layout is not MAPPED
    return hasattr(Translator, op.name)
