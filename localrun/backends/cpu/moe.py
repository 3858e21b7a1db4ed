"""Mixtures of experts as native operations: routing, the experts' networks, the shared one, and the sum."""

import ctypes
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

from localrun.backends.cpu import abi
from localrun.backends.cpu.operands import Native, OperandBuilder
from localrun.ops.instructions import LinearWeight, Moe, SharedExpert, Slot


class MoeBuilder(OperandBuilder):
    """Translates `Moe` into a product, a routing, two passes of experts and their sum."""

    def moe(self, op: Moe, out: int) -> Iterator[Native]:
        """The scores, which rows go where, gate and up of every expert, down, the shared expert, and the sum."""
        router, n_used, take = op.router.weight, op.router.routing.n_used, self.buffers.take
        up, down = op.experts.up.packed, op.experts.down.packed
        read = [self.activation_format_of(weight.packed) for weight in op.experts.widening]
        assert op.chosen_by is None or self.code_order.get(op.a.index) == b"", "nobody else makes its formats"
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

    def routes(self, n_experts: int, top_k: int) -> Any:
        """Room for the choices of a step; mixtures of one size take turns."""
        if (n_experts, top_k) not in self.shared_routes:
            n = 4 * self.buffers.max_rows * top_k
            room = [self.buffers.allocate(n_bytes) for n_bytes in (n, n, n, 4 * (n_experts + 1))]
            self.shared_routes[n_experts, top_k] = ctypes.pointer(self.kept(abi.Routes(*room, n_experts, top_k)))
        return self.shared_routes[n_experts, top_k]
