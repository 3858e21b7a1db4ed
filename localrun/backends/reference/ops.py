"""The reference backend: every operation in plain torch, on any device. It defines what correct means.

No float64 and no complex numbers: Apple's MPS has neither.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.pool import KVPool
from localrun.ops.interface import MAX_CANDIDATES, Act, Angles, LogitAdjust, Logits, StepInput
from localrun.ops.kv import BLOCK_TOKENS, MAX_F16
from localrun.ops.layouts import F32, Packed, on_device
from localrun.ops.terms import Activation, Form, GatedActivation, QKNorm

TILE_BYTES = 64 << 20  # of a matrix decoded as it is used, or of attention scores, at a time


class ReferenceOps:
    """Implements `ops.interface.Ops` on `device`; `pool` holds the keys and values of every sequence."""

    def __init__(self, pool: KVPool, device: torch.device) -> None:
        self.pool = pool
        self.device = device
        self.step: StepInput

    def begin(self, step: StepInput) -> None:
        """Point all operations at one step; called once before them."""
        self.step = step
        self.pool.begin(step)
        self.positions = torch.tensor(step.positions, device=self.device)  # [R]
        self.cos_sin, self.sink_cos_sin = self.angles(step.cos_sin), self.angles(step.sink_cos_sin)
        self.query_scale = None if step.query_scale is None else on_device(step.query_scale, self.device)[:, None, None]
        self.rows_of: list[dict[int, list[int]]] = [{} for _ in step.sequences]  # [S]: rows by the block they lie in
        for row, (sequence, position) in enumerate(zip(step.row_sequence, step.positions, strict=True)):
            self.rows_of[sequence].setdefault(position // BLOCK_TOKENS, []).append(row)

    def angles(self, kinds: Sequence[Angles]) -> list[tuple[Tensor, Tensor]]:
        """Cosines and sines of every rope kind on the device."""
        return [(on_device(cos, self.device), on_device(sin, self.device)) for cos, sin in kinds]

    def embed(self, weight: Packed, scale: float) -> Tensor:
        ids = torch.tensor(self.step.token_ids, device=self.device)
        return weight.unpack_rows(ids) * scale

    def norm(
        self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None, forms: tuple[Form, ...] = ("f32",)
    ) -> Act | Tensor:
        normed = self.rms_norm(x, weight, eps)
        return Act(normed) if residual is None else residual + normed

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return rms_norm(x, weight, eps)

    def linear(
        self,
        a: Act | Tensor,
        weights: Sequence[tuple[Packed, Tensor | None]],
        out_scale: float = 1.0,
        residual: Tensor | None = None,
        act: GatedActivation = "none",
    ) -> list[Tensor]:
        x = a.f32 if isinstance(a, Act) else a
        results = [self.matmul(x, weight, bias) for weight, bias in weights]
        if act != "none":
            gate, up = results
            results = [activate(gate, "silu" if act == "silu_mul" else "gelu") * up]
        if out_scale != 1.0:
            results = [y * out_scale for y in results]
        return results if residual is None else [residual + y for y in results]

    def matmul(self, x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
        """x @ weight.T + bias, decoding the matrix in tiles of rows unless it is held as f32."""
        if weight.layout is F32:
            return F.linear(x, weight.planes[0], bias)
        tile = max(1, TILE_BYTES // (4 * weight.n_cols))
        parts = [F.linear(x, weight.unpack(r, min(tile, weight.n_rows - r))) for r in range(0, weight.n_rows, tile)]
        y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return y if bias is None else y + bias

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
        sink_query: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        place = self.pool.layers[layer]
        if qk_norm == "row" and q_weight is not None and k_weight is not None:
            q, k = self.rms_norm(q, q_weight, eps), self.rms_norm(k, k_weight, eps)
        q = q.unflatten(-1, (place.n_heads, place.head_dim))
        k = k.unflatten(-1, (place.n_kv_heads, place.head_dim))
        v = v.unflatten(-1, (place.n_kv_heads, place.head_dim))
        if qk_norm == "head" and q_weight is not None and k_weight is not None:
            q, k = self.rms_norm(q, q_weight, eps), self.rms_norm(k, k_weight, eps)
        sink_q = q if sink_query else None
        if rope is not None:
            q, k = (rotate(x, *self.cos_sin[rope]) for x in (q, k))
            if sink_q is not None:
                sink_q = rotate(sink_q, *self.sink_cos_sin[rope])
        if self.query_scale is not None:
            q, sink_q = q * self.query_scale, None if sink_q is None else sink_q * self.query_scale
        if self.pool.codecs[layer].rotates:
            k, v = (rotate_hadamard(x.clamp(-MAX_F16, MAX_F16)) for x in (k, v))
            q, sink_q = rotate_hadamard(q), None if sink_q is None else rotate_hadamard(sink_q)
        self.pool.append(layer, k, v)
        return q, sink_q

    def attention(
        self,
        q: Tensor,
        layer: int,
        scale: float,
        softcap: float | None = None,
        window: int | None = None,
        sinks: Tensor | None = None,
        sink_query: Tensor | None = None,
        sink_window: int | None = None,
    ) -> Tensor:
        assert window is None or sink_window is None
        codec, out = self.pool.codecs[layer], torch.empty_like(q)
        for index, by_block in enumerate(self.rows_of):
            blocks = self.pool.blocks(layer, index)
            assert window is not None or blocks.from_the_start, "block 0 is missing"
            if codec.native and by_block:  # one form: all rows see the same keys
                by_block = {max(by_block): [row for rows in by_block.values() for row in rows]}
            for own, rows in by_block.items():
                slots, keys, values = blocks.seen_from(own)
                n_rows = max(1, TILE_BYTES // (4 * q.shape[1] * len(slots)))
                for tile in torch.tensor(rows, device=self.device).split(n_rows):
                    mask = visible(self.positions[tile], slots, window, sink_window)
                    sink_q = None if sink_query is None else sink_query[tile]
                    out[tile] = attend(q[tile], keys, values, mask, scale, softcap, sinks, sink_q)
        return (rotate_hadamard(out) if codec.rotates else out).flatten(1)

    def moe(
        self,
        a: Act | Tensor,
        router: Packed,
        experts: tuple[Packed, Packed, Packed],
        top_k: int,
        normalize: bool,
        act: GatedActivation = "silu_mul",
        out_scale: float = 1.0,
        residual: Tensor | None = None,
    ) -> Tensor:
        x = a.f32 if isinstance(a, Act) else a
        weights, chosen = ranked(torch.softmax(self.matmul(x, router, None), dim=-1), top_k)  # [R, top_k]
        if normalize:
            weights = weights / weights.sum(-1, keepdim=True)
        y = x.new_empty(len(x), top_k, x.shape[-1])
        for expert in chosen.unique().tolist():
            gate, up, down = (rows_of_expert(stack, router.n_rows, expert) for stack in experts)
            rows, choice = torch.where(chosen == expert)
            (hidden,) = self.linear(x[rows], [(gate, None), (up, None)], act=act)
            y[rows, choice] = self.matmul(hidden, down, None)
        out = torch.zeros_like(x)
        for best in range(top_k):
            out = out + y[:, best] * weights[:, best, None]
        out = out * out_scale
        return out if residual is None else residual + out

    def logits(self, a: Act | Tensor, weight: Packed, scale: float = 1.0, softcap: float | None = None) -> Logits:
        x = a.f32 if isinstance(a, Act) else a
        rows = self.matmul(x[torch.tensor(self.step.logits_rows, dtype=torch.long, device=self.device)], weight, None)
        if scale != 1.0:
            rows = rows * scale
        if softcap is not None:
            rows = (softcap * torch.tanh(rows / softcap)).where(rows.isfinite(), rows)  # no cap hides what is no number
        return finish_logits(rows, self.step.adjust)


def rows_of_expert(stack: Packed, n_experts: int, expert: int) -> Packed:
    """One of n_experts matrices that lie one after the other, decoded."""
    n_rows = stack.n_rows // n_experts
    return Packed(F32, "F32", n_rows, stack.n_cols, (stack.unpack(expert * n_rows, n_rows),))


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight over the last dim (Zhang and Sennrich 2019)."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def activate(x: Tensor, activation: Activation) -> Tensor:
    return F.silu(x) if activation == "silu" else F.gelu(x, approximate="tanh")


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x [R, heads, head_dim]: dims j and j + dims/2 are one pair; dims past those stay.

    cos, sin: [R, dims / 2] (Su et al. 2021, in the pairing of GPT-NeoX).
    """
    half = cos.shape[-1]
    cos, sin = cos[:, None, :], sin[:, None, :]
    low, high, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((low * cos - high * sin, high * cos + low * sin, rest), dim=-1)


def visible(positions: Tensor, slots: Tensor, window: int | None, sink_window: int | None = None) -> Tensor:
    """Which of the keys at positions `slots` [T] the queries at `positions` [R] see -> bool [R, T]."""
    behind = positions[:, None] - slots
    seen = behind >= 0
    if window is not None:
        seen &= behind < window
    if sink_window is not None:
        seen &= (behind < sink_window) | (slots < BLOCK_TOKENS)
    return seen


def attend(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    scale: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    sink_query: Tensor | None = None,
) -> Tensor:
    """q [R, n_heads, d], keys and values [T, n_kv_heads, d], mask [R, T] -> [R, n_heads, d].

    With `sink_query`, shaped as q, the first 64 keys are block 0 and scored with it. A hidden key may hold anything.
    """
    n_rows, n_heads, head_dim = q.shape
    n_kv_heads = keys.shape[1]
    grouped = (n_rows, n_kv_heads, n_heads // n_kv_heads, head_dim)
    scores = torch.einsum("rkgd,tkd->rkgt", q.view(grouped), keys)
    if sink_query is not None:
        scores[..., :BLOCK_TOKENS] = torch.einsum("rkgd,tkd->rkgt", sink_query.view(grouped), keys[:BLOCK_TOKENS])
    scores = scores * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
    if sinks is not None:
        column = sinks.view(1, n_kv_heads, -1, 1).expand(n_rows, -1, -1, 1)
        scores = torch.cat((scores, column), dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : keys.shape[0]]
    broken = ~torch.isfinite(values).all(-1)  # [T, n_kv_heads]: of these only a query that sees one becomes NaN
    out = torch.einsum("rkgt,tkd->rkgd", weights, values.masked_fill(broken[..., None], 0.0))
    sees_broken = mask.float() @ broken.float() > 0  # [R, n_kv_heads]
    return out.masked_fill(sees_broken[..., None, None], torch.nan).reshape(q.shape)


def finish_logits(rows: Tensor, adjust: Sequence[LogitAdjust | None]) -> Logits:
    """Check, adjust by id, and pick the candidates of raw logits [L, vocab]."""
    finite = torch.isfinite(rows).all(-1)
    temperatures = torch.ones(len(rows), 1, device=rows.device)
    for index, change in enumerate(adjust):
        if change is not None:
            apply_adjust(rows[index], change)
            temperatures[index] = change.temperature or 1.0
    top_values, top_ids = ranked(rows, min(MAX_CANDIDATES, rows.shape[-1]))
    found = (top_ids, top_values, torch.logsumexp(rows / temperatures, dim=-1), finite)
    return Logits(rows, *(x.cpu().numpy() for x in found))


def ranked(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best values of each row and their ids, best first, equal values by lower id."""
    values, ids = rows.topk(min(count + 1, rows.shape[-1]))
    if bool((values[:, count - 1 : count] == values[:, count:]).any()):  # topk cut through a tie: settle it exactly
        values, ids = rows.sort(dim=-1, descending=True, stable=True)
        return values[:, :count], ids[:, :count]
    ids, order = ids[:, :count].sort(dim=-1)
    values, rank = values[:, :count].gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, ids.gather(-1, rank)


def apply_adjust(row: Tensor, change: LogitAdjust) -> None:
    """Penalties and bias, in place: repeat divides positive and multiplies negative logits (Keskar et al. 2019)."""
    if change.seen and change.repeat != 1.0:
        ids = torch.tensor(list(change.seen), device=row.device)
        row[ids] = torch.where(row[ids] > 0, row[ids] / change.repeat, row[ids] * change.repeat)
    if change.counts and (change.presence or change.frequency):
        ids = torch.tensor(list(change.counts), device=row.device)
        counts = torch.tensor(list(change.counts.values()), dtype=row.dtype, device=row.device)
        row[ids] -= change.presence + change.frequency * counts
    if change.bias:
        ids = torch.tensor(list(change.bias), device=row.device)
        row[ids] += torch.tensor(list(change.bias.values()), dtype=row.dtype, device=row.device)
