"""The reference one row at a time (`LOCALRUN_REFERENCE=rows`): slow, but nothing beside a row changes its result.

Every call has a fixed shape: one row, one head, one block of keys. Blocks fold in ascending order by online softmax
inside absolute units of 512 positions; unit results merge in ascending order; a sink joins the final merge.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from localrun.ops.interface import Act
from localrun.ops.layouts import Packed
from localrun.ops.reference import ReferenceOps, rms_norm, rotate
from localrun.ops.terms import Form, GatedActivation, QKNorm

UNIT_TOKENS = 512
State = tuple[Tensor, Tensor, Tensor]  # running maximum [], sum [], weighted values [d]


class RowReferenceOps(ReferenceOps):
    """ReferenceOps whose batch, chunking and tiling cannot show in the result, bit for bit."""

    def norm(
        self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None, forms: tuple[Form, ...] = ("f32",)
    ) -> Act | Tensor:
        normed = torch.cat([rms_norm(row, weight, eps) for row in x.split(1)])
        return Act(normed) if residual is None else residual + normed

    def linear(
        self,
        a: Act | Tensor,
        weights: Sequence[tuple[Packed, Tensor | None]],
        out_scale: float = 1.0,
        residual: Tensor | None = None,
        act: GatedActivation = "none",
    ) -> list[Tensor]:
        x = a.f32 if isinstance(a, Act) else a
        before = [None] * len(x) if residual is None else residual.split(1)
        per_row = [
            ReferenceOps.linear(self, row, weights, out_scale, rest, act)
            for row, rest in zip(x.split(1), before, strict=True)
        ]
        return [torch.cat(parts) for parts in zip(*per_row, strict=True)]

    def matmul(self, x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
        return torch.cat([super(RowReferenceOps, self).matmul(row, weight, bias) for row in x.split(1)])

    def rope_append(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: int,
        rope: int | None,
        qk_norm: QKNorm = "none",
        q_weight: Tensor | None = None,
        k_weight: Tensor | None = None,
        eps: float = 0.0,
    ) -> Tensor:
        place = self.pool.layers[layer]

        def prepared(x: Tensor, n_heads: int, weight: Tensor | None) -> Tensor:
            parts = []
            for index, row in enumerate(x.split(1)):
                if qk_norm == "row" and weight is not None:
                    row = rms_norm(row, weight, eps)
                heads = row.unflatten(-1, (n_heads, place.head_dim))
                if qk_norm == "head" and weight is not None:
                    heads = rms_norm(heads, weight, eps)
                if rope is not None:
                    cos, sin = self.step.cos_sin[rope]
                    heads = rotate(heads, cos[index : index + 1], sin[index : index + 1])
                parts.append(heads)
            return torch.cat(parts)

        stored = v.unflatten(-1, (place.n_kv_heads, place.head_dim))
        self.pool.append(layer, prepared(k, place.n_kv_heads, k_weight), stored)
        return prepared(q, place.n_heads, q_weight)

    def attention(
        self,
        q: Tensor,
        layer: int,
        scale: float,
        softcap: float | None = None,
        window: int | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        out = torch.empty_like(q)
        for index, rows in enumerate(self.rows_of):
            first, keys, values = self.pool.gather(layer, index)
            for row in rows.tolist():
                position = self.step.positions[row]
                for head in range(q.shape[1]):
                    kv_head = head * keys.shape[1] // q.shape[1]
                    sink = None if sinks is None else sinks[head]
                    view = KeyView(first, keys[:, kv_head], values[:, kv_head], self.pool.block_tokens)
                    out[row, head] = fold(q[row, head], position, view, scale, softcap, window, sink)
        return out.flatten(1)


class KeyView:
    """Keys and values of one head, handed out in whole zero-padded blocks by absolute block number."""

    def __init__(self, first: int, keys: Tensor, values: Tensor, block_tokens: int) -> None:
        self.first, self.keys, self.values, self.block_tokens = first, keys, values, block_tokens

    def block(self, number: int) -> tuple[Tensor, Tensor]:
        """Block `number` -> keys and values [block_tokens, d]; slots past the end are zero."""
        start = number * self.block_tokens - self.first
        keys, values = (x[start : start + self.block_tokens] for x in (self.keys, self.values))
        missing = self.block_tokens - len(keys)
        if missing:
            pad = keys.new_zeros(missing, keys.shape[1])
            keys, values = torch.cat((keys, pad)), torch.cat((values, pad))
        return keys.contiguous(), values.contiguous()


def fold(
    q: Tensor,
    position: int,
    view: KeyView,
    scale: float,
    softcap: float | None,
    window: int | None,
    sink: Tensor | None,
) -> Tensor:
    """Attention of one query [d] at `position` over one head -> [d]."""
    oldest = 0 if window is None else max(0, position - window + 1)
    blocks_per_unit = UNIT_TOKENS // view.block_tokens
    units: list[State] = []
    state: State | None = None
    for number in range(oldest // view.block_tokens, position // view.block_tokens + 1):
        if state is not None and number % blocks_per_unit == 0:
            units.append(state)
            state = None
        keys, values = view.block(number)
        scores = (keys @ q) * scale  # [block_tokens]
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        slots = torch.arange(view.block_tokens, device=q.device) + number * view.block_tokens
        scores = scores.masked_fill((slots > position) | (slots < oldest), -torch.inf)
        top = scores.max()
        weights = torch.exp(scores - top)
        block: State = (top, weights.sum(), weights @ values)
        state = block if state is None else merge(state, block)
    if state is not None:
        units.append(state)
    total = units[0]
    for unit in units[1:]:
        total = merge(total, unit)
    if sink is not None:
        total = merge(total, (sink, torch.ones_like(sink), torch.zeros_like(q)))
    return total[2] / total[1]


def merge(a: State, b: State) -> State:
    """Two softmax states over disjoint keys into one (Milakov and Gimelshein 2018)."""
    top = torch.maximum(a[0], b[0])
    keep, add = torch.exp(a[0] - top), torch.exp(b[0] - top)
    return top, a[1] * keep + b[1] * add, a[2] * keep + b[2] * add
