"""From recorded operations to the native step program: instructions, and what keeps them alive."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from localrun.backends.cpu import abi
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import (
    Attention,
    Embed,
    GeluMul,
    Linear,
    LinearWeight,
    LogitsOf,
    Moe,
    Norm,
    RopeAppend,
    Scale,
    SharedExpert,
    SigmoidMul,
    Slot,
)
from localrun.ops.layouts import MAPPED, Packed, Vector
from localrun.ops.recording import Recorded
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv
from localrun.ops.widths import slot_widths

Native: TypeAlias = tuple[str, Any]  # the name of a native operation, and its structure of operands


class ProgramBuilder:
    """Translates instructions one by one. `matrix_of` and `activation_format_of` know the layouts of weights,
    `file_type` the numbers of quant types."""

    def __init__(
        self,
        recorded: Sequence[Recorded],
        layers: Sequence[CacheLayer],
        buffers: CpuBuffers,
        matrix_of: Callable[[Packed], abi.Matrix],
        activation_format_of: Callable[[Packed], int],
        file_type: Callable[[str], int],
    ) -> None:
        self.recorded, self.buffers = recorded, buffers
        self.matrix_of, self.activation_format_of, self.file_type = matrix_of, activation_format_of, file_type
        self.widths = slot_widths(recorded, layers)
        self.values: dict[int, abi.Value] = {}
        self.keep: list[Any] = []  # what the C side points to
        self.shared_routes: dict[tuple[int, int], Any] = {}
        self.formats = self.wanted_formats()
        norms = (r for r in recorded if isinstance(r.instruction, Norm) and r.instruction.residual is None)
        self.made_by_norm = {norm.results[0] for norm in norms}
        self.vocab_size = 0
        self.logits_rows = 0  # address of f32 [max_rows, vocab]; a row takes memory when it is first written

    def build(self) -> list[abi.Instruction]:
        built = []
        following = self.mapped_after()
        for number, recorded in enumerate(self.recorded):
            translate = getattr(self, recorded.instruction.name)
            announced = self.will_need(following.get(number, ()))
            for op, operands in (*announced, *translate(recorded.instruction, *recorded.results)):
                native = abi.Instruction(op=abi.OPS.index(op))
                setattr(native, op, operands)
                built.append(native)
            for slot in recorded.dead:
                if slot in self.values:
                    self.buffers.give(self.values.pop(slot))
        return built

    def mapped_after(self) -> dict[int, Sequence[Packed]]:
        """By instruction that reads weights in files, those that the next such one reads; the first follow the last.

        Of experts nobody knows before which they are.
        """
        read = {
            number: [weight.packed for weight in one.instruction.weights if weight.packed.mapped]
            for number, one in enumerate(self.recorded)
            if isinstance(one.instruction, Linear)
        }
        numbers = [number for number, weights in read.items() if weights]
        return {number: read[after] for number, after in zip(numbers, [*numbers[1:], *numbers[:1]], strict=True)}

    def will_need(self, weights: Sequence[Packed], routes: Any = None) -> Iterator[Native]:
        """The system is told which of these are read next, where they are in files."""
        in_files = [weight for weight in weights if weight.mapped]
        native = abi.WillNeed(routes=routes)
        for index, weight in enumerate(in_files):
            native.weight[index] = self.matrix(weight)
        if in_files:
            yield "will_need", native

    def wanted_formats(self) -> dict[int, int]:
        """The formats in which some linear reads each value."""
        formats: dict[int, int] = {}
        for recorded in self.recorded:
            op = recorded.instruction
            if isinstance(op, Linear):
                read = [(op.a, weight.packed) for weight in op.weights]
            elif isinstance(op, Moe):
                weights = [weight.packed for weight in op.experts.widening]
                if op.shared is not None:
                    weights += [weight.packed for weight in op.shared.expert.widening]
                    weights += [] if op.shared.gate is None else [op.shared.gate]
                read = [(op.chosen_by or op.a, op.router.weight), *((op.a, weight) for weight in weights)]
            else:
                continue
            for a, weight in read:
                formats[a.index] = formats.get(a.index, 0) | self.activation_format_of(weight)
        return formats

    def embed(self, op: Embed, out: int) -> Iterator[Native]:
        made = self.result(out)
        if op.weight.layout is MAPPED:
            yield "embed_mapped", self.embed_mapped(op, made)
            return
        yield op.name, abi.Embed(weight=self.matrix(op.weight), out=made, scale=op.scale)

    def embed_mapped(self, op: Embed, made: Any) -> abi.EmbedMapped:
        """The same of rows that stay in their file."""
        (rows,) = self.kept(op.weight).planes
        number, shape = self.file_type(op.weight.qtype), (op.weight.n_rows, op.weight.n_cols)
        return abi.EmbedMapped(rows.ctypes.data, made, op.scale, number, *shape)

    def norm(self, op: Norm, out: int) -> Iterator[Native]:
        made = self.result(out)
        native = abi.Norm(x=self.value(op.x), residual=self.value(op.residual), out=made, eps=op.eps)
        native.weight, native.size = self.vector(op.weight), len(op.weight)
        yield op.name, native

    def linear(self, op: Linear, *out: int) -> Iterator[Native]:
        native = abi.Linear(
            a=self.value(op.a),
            residual=self.value(op.residual),
            n_weights=len(op.weights),
            out_scale=op.out_scale,
            act=abi.ACTIVATIONS[op.act],
        )
        for index, weight in enumerate(op.weights):
            self.fill(native, index, weight)
        for index, slot in enumerate(out):
            native.out[index] = self.result(slot)
        native.make_formats = self.missing_formats(op.a)
        yield op.name, native

    def missing_formats(self, a: Slot) -> int:
        """The formats of a value that its first reader has to make, as no norm did."""
        if a.index in self.made_by_norm:
            return 0
        self.made_by_norm.add(a.index)
        return self.formats[a.index]

    def moe(self, op: Moe, out: int) -> Iterator[Native]:
        """The scores, which rows go where, gate and up of every expert, down, the shared expert, and the sum."""
        router, n_used, take = op.router.weight, op.router.routing.n_used, self.buffers.take
        up, down = op.experts.up.packed, op.experts.down.packed
        read = [self.activation_format_of(weight.packed) for weight in op.experts.widening]
        assert op.chosen_by is None or op.a.index in self.made_by_norm, "nobody else makes its formats"
        routed_by, total = op.chosen_by or op.a, self.result(out)
        scores = self.kept(take(router.n_rows, 0))
        chosen = self.kept(take(up.n_cols, reduce(or_, read), n_used))
        hidden = self.kept(take(down.n_cols, self.activation_format_of(down), n_used))
        y = self.kept(take(down.n_rows // router.n_rows, 0, n_used))
        routes, act = self.routes(router.n_rows, n_used), abi.ACTIVATIONS[op.experts.act]
        routing = op.router.routing
        score = self.product(
            routed_by, ((LinearWeight(router, op.router.bias), scores),), self.missing_formats(routed_by)
        )
        route = abi.Route(
            scores=ctypes.pointer(scores),
            a=self.value(op.a),
            chosen=ctypes.pointer(chosen),
            routes=routes,
            choice_bias=self.vector(op.router.choice_bias),
            normalize=routing.normalize,
            reads_f32=not all(read),
            sigmoid=routing.score == "sigmoid",
            scale=routing.scale,
            expert_scale=self.vector(op.router.scale),
            n_groups=routing.n_groups,
            n_groups_used=routing.n_groups_used,
            group_rank=routing.group_rank,
        )
        widen = abi.Experts(a=ctypes.pointer(chosen), out=ctypes.pointer(hidden), routes=routes, act=act)
        for index, weight in enumerate(op.experts.widening):
            self.fill(widen, index, weight, router.n_rows)
        narrow = abi.Experts(
            a=ctypes.pointer(hidden), out=ctypes.pointer(y), routes=routes, make_formats=hidden.formats
        )
        self.fill(narrow, 0, op.experts.down, router.n_rows)
        combine = abi.Combine(
            y=ctypes.pointer(y), residual=self.value(op.residual), out=total, routes=routes, scale=op.out_scale
        )
        yield "linear", score
        yield "route", route
        yield from self.will_need([weight.packed for weight in (*op.experts.widening, op.experts.down)], routes)
        yield "experts", widen
        yield "experts", narrow
        shared = [] if op.shared is None else [*self.shared_expert(op.a, op.shared, combine)]
        yield from (("linear", linear) for linear, _ in shared)
        yield "combine", combine
        for value in (scores, *(made for _, values in shared for made in values)):
            self.buffers.give(value)
        for value in (chosen, hidden, y):
            self.buffers.give(value, n_used)

    def shared_expert(
        self, a: Slot, shared: SharedExpert, combine: abi.Combine
    ) -> Iterator[tuple[abi.Linear, list[abi.Value]]]:
        """The products of an expert that all rows go to, with the buffers they are made in; `combine` reads two."""
        down = shared.expert.down.packed
        hidden = self.kept(self.buffers.take(down.n_cols, self.activation_format_of(down)))
        y = self.kept(self.buffers.take(down.n_rows, 0))
        widen = self.product(a, [(weight, hidden) for weight in shared.expert.widening])
        widen.act = abi.ACTIVATIONS[shared.expert.act]
        yield widen, [hidden]
        narrow = self.product(hidden, ((shared.expert.down, y),), hidden.formats)
        combine.shared = ctypes.pointer(y)
        yield narrow, [y]
        if shared.gate is not None:
            share = self.kept(self.buffers.take(shared.gate.n_rows, 0))
            combine.shared_gate = ctypes.pointer(share)
            yield self.product(a, ((LinearWeight(shared.gate), share),)), [share]

    def product(
        self, a: Slot | abi.Value, made: Sequence[tuple[LinearWeight, abi.Value]], make_formats: int = 0
    ) -> abi.Linear:
        """scale · (a @ W.T) + bias for each of some weights, into its buffer."""
        read = ctypes.pointer(a) if isinstance(a, abi.Value) else self.value(a)
        linear = abi.Linear(a=read, n_weights=len(made), out_scale=1.0, make_formats=make_formats)
        for index, (weight, out) in enumerate(made):
            self.fill(linear, index, weight)
            linear.out[index] = ctypes.pointer(out)
        return linear

    def fill(self, native: abi.Linear | abi.Experts, index: int, weight: LinearWeight, n_experts: int = 1) -> None:
        """Give an operation one of its weights."""
        native.weight[index], native.bias[index] = self.matrix(weight.packed), self.vector(weight.bias)
        if not isinstance(weight.scale, float) or weight.scale != 1.0:
            native.scale[index] = self.vector(np.broadcast_to(np.asarray(weight.scale, np.float32), (n_experts,)))

    def routes(self, n_experts: int, top_k: int) -> Any:
        """Room for the choices of a step; mixtures of one size take turns."""
        if (n_experts, top_k) not in self.shared_routes:
            n = 4 * self.buffers.max_rows * top_k
            room = [self.buffers.allocate(n_bytes) for n_bytes in (n, n, n, 4 * (n_experts + 1))]
            self.shared_routes[n_experts, top_k] = ctypes.pointer(self.kept(abi.Routes(*room, n_experts, top_k)))
        return self.shared_routes[n_experts, top_k]

    def rope_append(self, op: RopeAppend, *out: int) -> Iterator[Native]:
        made = [self.result(slot) for slot in out]
        yield (
            op.name,
            abi.RopeAppend(
                q=self.value(op.q),
                k=self.value(op.k),
                v=self.value(op.v),
                out=made[0],
                sink_out=made[1] if op.sink_query else None,
                q_weight=self.vector(op.q_weight),
                k_weight=self.vector(op.k_weight),
                layer=op.layer,
                rope=-1 if op.rope is None else op.rope,
                qk_norm=abi.QK_NORMS[op.qk_norm],
                eps=op.eps,
                v_norm=op.v_norm,
            ),
        )

    def attention(self, op: Attention, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.Attention(
                q=self.value(op.q),
                sink_q=self.value(op.sink_query),
                out=self.result(out),
                sinks=self.vector(op.sinks),
                layer=op.layer,
                window=op.window or 0,
                sink_window=op.sink_window or 0,
                scale=op.scale,
                softcap=op.softcap or 0.0,
            ),
        )

    def sigmoid_mul(self, op: SigmoidMul, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.SigmoidMul(x=self.value(op.x), gate=self.value(op.gate), out=made)

    def gelu_mul(self, op: GeluMul, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.GeluMul(gate=self.value(op.gate), x=self.value(op.x), out=made, first=op.first)

    def scale(self, op: Scale, out: int) -> Iterator[Native]:
        made = self.result(out)
        yield op.name, abi.Scale(x=self.value(op.x), out=made, factor=op.factor)

    def short_conv(self, op: ShortConv, out: int) -> Iterator[Native]:
        by_tap = np.asarray(op.weight).reshape(self.widths[out], op.taps).T
        yield (
            op.name,
            abi.ShortConv(
                x=self.value(op.x),
                out=self.result(out),
                weight=self.vector(by_tap),
                bias=self.vector(op.bias),
                taps=op.taps,
                silu=op.act == "silu",
                layer=op.layer,
                state_at=op.state_at,
                gated=op.gated,
            ),
        )

    def gated_delta_rule(self, op: GatedDeltaRule, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.GatedDeltaRule(
                qkv=self.value(op.qkv),
                z=self.value(op.z),
                alpha=self.value(op.alpha),
                beta=self.value(op.beta),
                out=self.result(out),
                decay=self.vector(op.decay),
                dt_bias=self.vector(op.dt_bias),
                norm=self.vector(op.norm),
                n_key_heads=op.n_key_heads,
                n_value_heads=op.n_value_heads,
                key_dim=op.key_dim,
                value_dim=op.value_dim,
                tiled=op.tiled,
                layer=op.layer,
                state_at=op.state_at,
                eps=op.eps,
            ),
        )

    def selective_scan(self, op: SelectiveScan, out: int) -> Iterator[Native]:
        yield (
            op.name,
            abi.SelectiveScan(
                xbc=self.value(op.xbc),
                z=self.value(op.z),
                dt=self.value(op.dt),
                out=self.result(out),
                decay=self.vector(op.decay),
                dt_bias=self.vector(op.dt_bias),
                skip=self.vector(op.skip),
                norm=self.vector(op.norm),
                n_heads=op.n_heads,
                head_dim=op.head_dim,
                n_groups=op.n_groups,
                state_dim=op.state_dim,
                layer=op.layer,
                state_at=op.state_at,
                eps=op.eps,
            ),
        )

    def logits(self, op: LogitsOf, out: int) -> Iterator[Native]:
        self.vocab_size = op.weight.n_rows
        self.logits_rows = self.buffers.allocate(4 * self.buffers.max_rows * op.weight.n_rows)
        width = self.values[op.a.index].width
        gathered = self.kept(self.buffers.make(width, self.activation_format_of(op.weight), self.buffers.max_rows))
        native = abi.LogitsOp(
            a=self.value(op.a),
            weight=self.matrix(op.weight),
            rows=self.logits_rows,
            gathered=ctypes.pointer(gathered),
            scale=op.scale,
            softcap=op.softcap or 0.0,
        )
        yield op.name, native

    def result(self, slot: int) -> Any:
        self.values[slot] = self.kept(self.buffers.take(self.widths[slot], self.formats.get(slot, 0)))
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
