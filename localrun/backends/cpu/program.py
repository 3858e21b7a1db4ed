"""From recorded operations to the native step program: buffers, instructions, and what keeps them alive."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from localrun.backends.cpu import abi
from localrun.ops.interface import CacheLayer
from localrun.ops.layouts import Packed, Vector
from localrun.ops.program import Instruction, Slot

GROUP = 32  # codes that share a scale and a sum
STRIDE = 256


@dataclass(slots=True)
class Buffers:
    """Arena buffers by what they hold; one is used again as soon as nothing reads it."""

    allocate: Callable[[int], int]  # bytes -> address, zeroed
    max_rows: int
    free: dict[tuple[int, int, int], list[abi.Value]] = field(default_factory=dict)

    def take(self, width: int, forms: int, copies: int = 1) -> abi.Value:
        """A buffer of exactly that width: what lies behind it in a row has to stay zero. `copies`: of every row."""
        spare = self.free.get((width, forms, copies))
        return spare.pop() if spare else self.make(width, forms, copies * self.max_rows)

    def give(self, value: abi.Value, copies: int = 1) -> None:
        self.free.setdefault((value.width, value.formats, copies), []).append(value)

    def make(self, width: int, forms: int, rows: int) -> abi.Value:
        stride = -(-width // STRIDE) * STRIDE
        value = abi.Value(stride=stride, width=width, formats=forms, f32=self.allocate(4 * rows * stride))
        if forms & abi.FORMAT_Q8:
            value.q8 = self.allocate(rows * stride)
            value.q8_scale = self.allocate(4 * rows * stride // GROUP)
            value.q8_sum = self.allocate(4 * rows * stride // GROUP)
        if forms & abi.FORMAT_BF16:
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
        self.shared_routes: dict[tuple[int, int], Any] = {}
        self.forms = self.wanted_forms()
        self.made_by_norm = {i.results[0] for i in instructions if i.op == "norm" and i.arguments[3] is None}
        self.vocab_size = 0
        self.logits_rows = 0  # address of f32 [max_logits, vocab]

    def build(self) -> list[abi.Instruction]:
        built = []
        for instruction in self.instructions:
            native = getattr(self, instruction.op)(instruction)
            for op, arguments in native if isinstance(native, list) else [(instruction.op, native)]:
                translated = abi.Instruction(op=abi.OPS.index(op))
                setattr(translated, op, arguments)
                built.append(translated)
            for slot in instruction.dead:
                if slot in self.values:
                    self.buffers.give(self.values.pop(slot))
        return built

    def wanted_forms(self) -> dict[int, int]:
        """The forms in which some linear reads each value."""
        forms: dict[int, int] = {}
        for i in self.instructions:
            read = [weight for weight, _ in i.arguments[1]] if i.op == "linear" else []
            if i.op == "moe":
                read = [i.arguments[1], *i.arguments[2][:2]]
            for weight in read:
                forms[i.arguments[0].index] = forms.get(i.arguments[0].index, 0) | self.form_of(weight)
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
        op.make_formats = self.missing_forms(a)
        return op

    def missing_forms(self, a: Slot) -> int:
        """The forms of a value that its first reader has to make, as no norm did."""
        if a.index in self.made_by_norm:
            return 0
        self.made_by_norm.add(a.index)
        return self.forms[a.index]

    def moe(self, i: Instruction) -> list[tuple[str, Any]]:
        """The scores, which rows go where, gate and up of every expert, down, and the sum: five native operations."""
        a, router, (gate, up, down), top_k, normalize, act, out_scale, residual = i.arguments
        make_forms, out = self.missing_forms(a), self.result(i.results[0], self.values[a.index].width)
        take = self.buffers.take
        scores = self.kept(take(router.n_rows, 0))
        chosen = self.kept(take(gate.n_cols, self.form_of(gate) | self.form_of(up), top_k))
        hidden = self.kept(take(down.n_cols, self.form_of(down), top_k))
        y = self.kept(take(down.n_rows // router.n_rows, 0, top_k))
        routes = self.routes(router.n_rows, top_k)
        score = abi.Linear(a=self.value(a), n_weights=1, out_scale=1.0, make_formats=make_forms)
        score.weight[0], score.out[0] = self.matrix(router), ctypes.pointer(scores)
        reads_f32 = not (self.form_of(gate) and self.form_of(up))
        sent = (ctypes.pointer(scores), self.value(a), ctypes.pointer(chosen), routes, normalize, reads_f32)
        widen = abi.Experts(
            a=ctypes.pointer(chosen), out=ctypes.pointer(hidden), routes=routes, act=abi.ACTIVATIONS[act]
        )
        widen.weight[0], widen.weight[1] = self.matrix(gate), self.matrix(up)
        narrow = abi.Experts(
            a=ctypes.pointer(hidden), out=ctypes.pointer(y), routes=routes, make_formats=hidden.formats
        )
        narrow.weight[0] = self.matrix(down)
        summed = abi.Combine(ctypes.pointer(y), self.value(residual), out, routes, out_scale)
        built = [("linear", score), ("route", abi.Route(*sent)), ("experts", widen), ("experts", narrow)]
        built.append(("combine", summed))
        self.buffers.give(scores)
        for value in (chosen, hidden, y):
            self.buffers.give(value, top_k)
        return built

    def routes(self, n_experts: int, top_k: int) -> Any:
        """Room for the choices of a step; mixtures of one size take turns."""
        if (n_experts, top_k) not in self.shared_routes:
            n = 4 * self.buffers.max_rows * top_k
            room = [self.buffers.allocate(n_bytes) for n_bytes in (n, n, n, 4 * (n_experts + 1))]
            self.shared_routes[n_experts, top_k] = ctypes.pointer(self.kept(abi.Routes(*room, n_experts, top_k)))
        return self.shared_routes[n_experts, top_k]

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
