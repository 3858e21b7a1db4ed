"""From recorded operations to the native step program: buffers, instructions, and what keeps them alive."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from localrun.ops import cpu_abi as abi
from localrun.ops.interface import CacheLayer
from localrun.ops.layouts import Packed, Vector
from localrun.ops.program import Instruction, Slot

FORM_GROUPS = {abi.FORM_Q8_32: (32, 32), abi.FORM_Q8_256: (256, 16)}  # elements of a scale, of a sum
STRIDE = 256


@dataclass(slots=True)
class Buffers:
    """Arena buffers by what they hold; one is used again as soon as nothing reads it."""

    allocate: Callable[[int], int]  # bytes -> address, zeroed
    max_rows: int
    free: dict[tuple[int, int], list[abi.Value]] = field(default_factory=dict)

    def take(self, width: int, forms: int) -> abi.Value:
        """A buffer of exactly that width: what lies behind it in a row has to stay zero."""
        spare = self.free.get((width, forms))
        return spare.pop() if spare else self.make(width, forms, self.max_rows)

    def give(self, value: abi.Value) -> None:
        self.free.setdefault((value.width, value.forms), []).append(value)

    def make(self, width: int, forms: int, rows: int) -> abi.Value:
        stride = -(-width // STRIDE) * STRIDE
        value = abi.Value(stride=stride, width=width, forms=forms, f32=self.allocate(4 * rows * stride))
        for form, (scale_group, sum_group) in FORM_GROUPS.items():
            if forms & form:
                value.q8 = self.allocate(rows * stride)
                value.q8_scale = self.allocate(4 * rows * stride // scale_group)
                value.q8_sum = self.allocate(4 * rows * stride // sum_group)
        if forms & abi.FORM_BF16:
            value.bf16 = self.allocate(2 * rows * stride)
        return value


class ProgramBuilder:
    """Translates instructions one by one; `matrix_of` and `form_of` know the layouts of weights."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        layers: Sequence[CacheLayer],
        buffers: Buffers,
        matrix_of: Callable[[Packed], abi.Matrix],
        form_of: Callable[[Packed], int],
        max_logits: int,
    ) -> None:
        self.instructions, self.layers, self.buffers = instructions, layers, buffers
        self.matrix_of, self.form_of, self.max_logits = matrix_of, form_of, max_logits
        self.values: dict[int, abi.Value] = {}
        self.keep: list[Any] = []  # what the C side points to
        self.forms = self.wanted_forms()
        self.made_by_norm = {i.results[0] for i in instructions if i.op == "norm" and i.arguments[3] is None}
        self.vocab_size = 0
        self.logits_rows = 0  # address of f32 [max_logits, vocab]

    def build(self) -> list[abi.Instruction]:
        built = []
        for instruction in self.instructions:
            translated = abi.Instruction(op=abi.OPS.index(instruction.op))
            setattr(translated, instruction.op, getattr(self, instruction.op)(instruction))
            built.append(translated)
            for slot in instruction.dead:
                if slot in self.values:
                    self.buffers.give(self.values.pop(slot))
        return built

    def wanted_forms(self) -> dict[int, int]:
        """The forms in which some linear reads each value."""
        forms: dict[int, int] = {}
        for i in self.instructions:
            if i.op == "linear":
                wanted = 0
                for weight, _ in i.arguments[1]:
                    wanted |= self.form_of(weight)
                forms[i.arguments[0].index] = forms.get(i.arguments[0].index, 0) | wanted
        return forms

    def embed(self, i: Instruction) -> abi.Embed:
        weight, scale = i.arguments
        return abi.Embed(self.matrix(weight), self.result(i.results[0], weight.n_cols), scale)

    def norm(self, i: Instruction) -> abi.Norm:
        x, weight, eps, residual, _forms = i.arguments
        out = self.result(i.results[0], self.values[x.index].width)
        return abi.Norm(self.value(x), self.value(residual), out, self.vector(weight), eps)

    def linear(self, i: Instruction) -> abi.Linear:
        a, weights, out_scale, residual, act = i.arguments
        op = abi.Linear(a=self.value(a), residual=self.value(residual), n_weights=len(weights), out_scale=out_scale)
        op.act = abi.ACTIVATIONS[act]
        for index, (weight, bias) in enumerate(weights):
            op.weight[index] = self.matrix(weight)
            op.bias[index] = self.vector(bias)
        for index, slot in enumerate(i.results):
            op.out[index] = self.result(slot, weights[index][0].n_rows)
        if a.index not in self.made_by_norm:
            op.make_forms = self.forms[a.index]
            self.made_by_norm.add(a.index)  # a second reader finds them made
        return op

    def rope_append(self, i: Instruction) -> abi.RopeAppend:
        q, k, v, layer, rope, qk_norm, q_weight, k_weight, eps, sink_query = i.arguments
        width = self.values[q.index].width
        return abi.RopeAppend(
            *(self.value(x) for x in (q, k, v)),
            self.result(i.results[0], width),
            self.result(i.results[1], width) if sink_query else None,
            self.vector(q_weight),
            self.vector(k_weight),
            layer,
            -1 if rope is None else rope,
            abi.QK_NORMS[qk_norm],
            eps,
        )

    def attention(self, i: Instruction) -> abi.Attention:
        q, layer, scale, softcap, window, sinks, sink_query, sink_window = i.arguments
        place = self.layers[layer]
        return abi.Attention(
            self.value(q),
            self.value(sink_query),
            self.result(i.results[0], place.n_heads * place.head_dim),
            self.vector(sinks),
            layer,
            window or 0,
            sink_window or 0,
            scale,
            softcap or 0.0,
        )

    def logits(self, i: Instruction) -> abi.LogitsOp:
        a, weight, scale, softcap = i.arguments
        self.vocab_size = weight.n_rows
        self.logits_rows = self.buffers.allocate(4 * self.max_logits * weight.n_rows)
        width = self.values[a.index].width
        gathered = self.kept(self.buffers.make(width, self.form_of(weight), self.max_logits))
        return abi.LogitsOp(
            self.value(a), self.matrix(weight), self.logits_rows, ctypes.pointer(gathered), scale, softcap or 0.0
        )

    def result(self, slot: int, width: int) -> Any:
        self.values[slot] = self.kept(self.buffers.take(width, self.forms.get(slot, 0)))
        return ctypes.pointer(self.values[slot])

    def value(self, slot: Slot | None) -> Any:
        return None if slot is None else ctypes.pointer(self.values[slot.index])

    def matrix(self, weight: Packed) -> Any:
        return ctypes.pointer(self.kept(self.matrix_of(self.kept(weight))))

    def vector(self, x: Vector | None) -> int | None:
        return None if x is None else int(self.kept(np.ascontiguousarray(x, np.float32)).ctypes.data)

    def kept(self, thing: Any) -> Any:
        self.keep.append(thing)
        return thing
