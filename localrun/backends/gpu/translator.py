"""Translation of recorded instructions to launches on fixed buffers, for one bucket of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from localrun.backends.gpu import attention, elementwise, matrices, recurrent
from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.layer_cache import LayerCache
from localrun.backends.gpu.mixture import ExpertProducts, mixture
from localrun.backends.gpu.mixture_memory import mixture_bytes
from localrun.backends.gpu.scratch import SPLIT_ROWS, partial_numbers
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.gpu.supports import has_kernels
from localrun.backends.reference.ops import ReferenceOps
from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import (
    Attention,
    Embed,
    GeluMul,
    Instruction,
    Linear,
    Moe,
    Norm,
    RopeAppend,
    Scale,
    SigmoidMul,
    Slot,
    Xielu,
)
from localrun.ops.kv import KVCodec
from localrun.ops.layouts import Packed
from localrun.ops.recording import Recorded
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv


@dataclass(frozen=True, slots=True)
class Bucket:
    """Sizes that launches are bound to: rows, padding included, and the most units of 512 tokens of a text."""

    rows: int
    n_units: int
    n_alone: int = 0  # rows of a large step that share their keys with few others, rounded up
    span: int = 0  # tokens of a span where rows are read in bulk


class Translator(ABC):
    """A method for each instruction that has kernels; torch computes the others, by the reference operations.

    What is abstract is what platforms do with kernels, or operands, of their own. backend: the name that
    `supports.py` knows the platform by.
    """

    backend: ClassVar[str]

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
        self.mixed = torch.empty(0, dtype=torch.int32, device=device.torch_device)  # of mixtures

    def reserve_partial(self, bucket: Bucket) -> bool:
        """Make sure that attention finds its scratch memory, for all the rows that are ever split -> whether there is
        another one now, for longer texts."""
        shapes = {(place.n_heads, place.head_dim) for place in self.layers}
        n = max(partial_numbers(SPLIT_ROWS, bucket.n_units, *shape) for shape in shapes)
        if n <= len(self.partial):
            return False
        self.partial = torch.empty(n, device=self.device.torch_device)
        return True

    def reserve_mixed(self, recorded: Sequence[Recorded], rows: int) -> None:
        """Make room for what lies between the kernels of mixtures, for so many rows."""
        ours = [each.instruction for each in recorded if self.has_kernels(each.instruction)]
        self.mixed = torch.zeros(mixture_bytes(ours, rows) // 4, dtype=torch.int32, device=self.device.torch_device)

    def has_kernels(self, op: Instruction) -> bool:
        """Whether kernels of ours compute an instruction."""
        return has_kernels(op, self.layers, self.backend)

    def cache(self, layer: int) -> LayerCache:
        """Where the keys and values of a layer are."""
        place, codec, pool = self.layers[layer], self.codecs[layer], self.reference.pool
        ring = None if codec.native else pool.store(place.group, ring=True)
        return LayerCache(place, codec, pool.store(place.group, ring=False), ring)

    def states(self, layer: int) -> recurrent.LayerStates:
        """Where the states of a layer are, and which of them the step goes on from and leaves."""
        place = self.layers[layer]
        return recurrent.LayerStates(self.reference.pool.states(layer).states, place.index, place.group, self.step)

    def launches(self, recorded: Sequence[Recorded], bucket: Bucket, step: StepTensors) -> list[Launch]:
        """Launches of the instructions, in order."""
        self.bucket, self.step = bucket, step
        self.quantized = set[int]()  # slots whose quantised form has been made
        made: list[Launch] = []
        for each in recorded:
            if self.has_kernels(each.instruction):
                made += getattr(self, each.instruction.name)(each.instruction, *each.results)
            else:
                made.append(self.by_torch(each))
        return made

    @property
    @abstractmethod
    def products(self) -> ExpertProducts:
        """Products that mixtures are made of."""
        ...

    @abstractmethod
    def norm(self, op: Norm, out: int) -> Iterator[Launch]: ...
    @abstractmethod
    def linear(self, op: Linear, *out: int) -> Iterator[Launch]: ...
    @abstractmethod
    def logits(self, a: Buffer, weight: Packed, out: Tensor, rows: int) -> Iterator[Launch]:
        """a @ W.T -> out, f32 [rows, vocab]"""
        ...

    @staticmethod
    @abstractmethod
    def reads_codes(weight: Packed) -> bool:
        """Whether linears with this matrix read quantised activations; else they read f32."""
        ...

    @staticmethod
    def reads_in_bulk(op: Linear) -> bool:
        """Whether a linear has a second way to read whole spans of a prompt."""
        return False

    def make_room(self, in_bulk: Sequence[Linear], rows: int, span: int) -> None:
        """Memory for the values that have a partial result, `rows` rows of each."""
        raise NotImplementedError("no linear has one")

    def embed(self, op: Embed, out: int) -> Iterator[Launch]:
        yield matrices.embed(self.device, op.weight, self.step.token_ids, op.scale, self.x(out), self.bucket.rows)

    def rope_append(self, op: RopeAppend, *out: int) -> Iterator[Launch]:
        q, (k, v) = self.x(op.q), (None if slot is None else self.x(slot) for slot in (op.k, op.v))
        made = [self.x(slot) for slot in out]
        sink_q = made[1] if op.sink_query else None
        cache, rows = self.cache(op.layer), self.bucket.rows
        yield attention.rope_append(self.device, self.step, op, cache, q, k, v, made[0], sink_q, rows)

    def attention(self, op: Attention, out: int) -> Iterator[Launch]:
        q8 = None
        if not self.bucket.span and attention.can_quantize(self.device, self.layers[op.layer], self.bucket.rows):
            q8 = self.buffers[out].q8(self.bucket.rows)
        if q8 is not None:
            self.quantized.add(out)
        yield from attention.attend(
            self.device,
            self.step,
            op,
            self.cache(op.layer),
            self.x(op.q),
            None if op.sink_query is None else self.x(op.sink_query),
            self.x(out),
            self.bucket.rows,
            self.bucket.n_units,
            self.partial,
            self.bucket.n_alone,
            q8,
        )

    def moe(self, op: Moe, out: int) -> Iterator[Launch]:
        chosen_by = op.a if op.chosen_by is None else op.chosen_by
        for slot in (op.a, chosen_by):
            yield from self.quantize_once(slot)
        rest = None if op.residual is None else self.x(op.residual)
        operands = (self.buffers[op.a.index], self.buffers[chosen_by.index], self.step.positions, rest, self.x(out))
        yield from mixture(self.products, op, *operands, self.mixed)

    def quantize_once(self, slot: Slot) -> Iterator[Launch]:
        """Make the quantised form of a value where there is one, unless it has been made."""
        if slot.index not in self.quantized:
            self.quantized.add(slot.index)
            yield from self.products.quantize(self.buffers[slot.index], self.bucket.rows)

    def sigmoid_mul(self, op: SigmoidMul, out: int) -> Iterator[Launch]:
        yield elementwise.sigmoid_mul(self.device, self.x(op.x), self.x(op.gate), self.x(out))

    def gelu_mul(self, op: GeluMul, out: int) -> Iterator[Launch]:
        yield elementwise.gelu_mul(self.device, self.x(op.gate), self.x(op.x), op.first, self.x(out))

    def scale(self, op: Scale, out: int) -> Iterator[Launch]:
        yield elementwise.scale(self.device, self.x(op.x), op.factor, self.x(out))

    def xielu(self, op: Xielu, out: int) -> Iterator[Launch]:
        yield elementwise.xielu(self.device, op, self.x(op.x), self.x(out))

    def short_conv(self, op: ShortConv, out: int) -> Iterator[Launch]:
        yield recurrent.short_conv(self.device, self.states(op.layer), op, self.x(op.x), self.x(out))

    def gated_delta_rule(self, op: GatedDeltaRule, out: int) -> Iterator[Launch]:
        operands = [self.x(slot) for slot in (op.qkv, op.alpha, op.beta, op.z, out)]
        yield from recurrent.gated_delta_rule(self.device, self.states(op.layer), op, *operands)

    def selective_scan(self, op: SelectiveScan, out: int) -> Iterator[Launch]:
        operands = [self.x(slot) for slot in (op.xbc, op.dt, op.z, out)]
        yield from recurrent.selective_scan(self.device, self.states(op.layer), op, *operands)

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
