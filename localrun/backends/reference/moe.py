"""Mixtures of experts in plain torch: choose, send each row to its experts, sum."""

from typing import Protocol

import torch
from torch import Tensor

from localrun.backends.reference.logits import ranked
from localrun.ops.instructions import Experts, Linear, LinearWeight, Moe, Router
from localrun.ops.layouts import F32, Packed


class Products(Protocol):
    """The operations that a mixture is made of."""

    def matmul(self, x: Tensor, weight: Packed, bias: Tensor | None = None) -> Tensor: ...
    def product(self, x: Tensor, weight: LinearWeight) -> Tensor: ...
    def linear(self, op: Linear) -> tuple[Tensor, ...]: ...


def mixture(ops: Products, op: Moe) -> Tensor:
    """The chosen experts of each row of `op.a`, weighted, summed best first, and the shared one -> f32 [R, hidden]."""
    x: Tensor = op.a
    read = x if op.chosen_by is None else op.chosen_by
    weights, chosen = choose(ops.matmul(read, op.router.weight, op.router.bias), op.router)  # [R, n_used]
    y = x.new_empty(*chosen.shape, x.shape[-1])
    for expert in chosen.unique().tolist():
        rows, choice = torch.where(chosen == expert)
        y[rows, choice] = feed_forward(ops, x[rows], expert_of(op.experts, expert, op.router.n_experts))
    out = torch.zeros_like(x)
    for best in range(chosen.shape[1]):
        out = out + y[:, best] * weights[:, best, None]
    if op.shared is not None:
        share = feed_forward(ops, x, op.shared.expert)
        out = out + (share if op.shared.gate is None else share * ops.matmul(x, op.shared.gate).sigmoid())
    return out


def choose(raw: Tensor, router: Router) -> tuple[Tensor, Tensor]:
    """Weights and numbers of the experts that rows go to, best first, from the router's raw outputs [R, n_experts]."""
    routing = router.routing
    scores = torch.softmax(raw, dim=-1) if routing.score == "softmax" else raw.sigmoid()
    ranks = scores if router.choice_bias is None else scores + router.choice_bias
    if routing.n_groups > 1:
        grouped = ranks.unflatten(-1, (routing.n_groups, -1))
        best_groups = ranked(grouped.topk(routing.group_rank, dim=-1).values.sum(-1), routing.n_groups_used)[1]
        allowed = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter(-1, best_groups, True)
        ranks = grouped.masked_fill(~allowed[..., None], -torch.inf).flatten(-2)
    chosen = ranked(ranks, routing.n_used)[1]
    weights = scores.gather(-1, chosen)
    if routing.normalize:
        weights = weights / weights.sum(-1, keepdim=True)
    weights = weights * routing.scale
    return weights if router.scale is None else weights * router.scale[chosen], chosen


def feed_forward(ops: Products, x: Tensor, expert: Experts) -> Tensor:
    (hidden,) = ops.linear(Linear(x, expert.widening, act=expert.act))
    return ops.product(hidden, expert.down)


def expert_of(experts: Experts, number: int, n_experts: int) -> Experts:
    """One of n_experts that lie one after the other, decoded."""

    def part(weight: LinearWeight) -> LinearWeight:
        stack, bias, scale = weight.packed, weight.bias, weight.scale
        n_rows = stack.n_rows // n_experts
        rows = Packed(F32, "F32", n_rows, stack.n_cols, (stack.unpack(number * n_rows, n_rows),))
        own_bias = None if bias is None else bias[number * n_rows : (number + 1) * n_rows]
        return LinearWeight(rows, own_bias, scale if isinstance(scale, float) else scale[number])

    gate = None if experts.gate is None else part(experts.gate)
    return Experts(gate, part(experts.up), part(experts.down), experts.act)
