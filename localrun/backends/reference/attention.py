"""Attention over gathered keys in plain torch: masks, scores and weighted sums."""

import torch
from torch import Tensor

from localrun.ops.kv import BLOCK_TOKENS


def visible(
    positions: Tensor,
    slots: Tensor,
    window: int | None,
    sink_window: int | None = None,
    reach: Tensor | None = None,
) -> Tensor:
    """Which of the keys at positions `slots` [T] the queries at `positions` [R] see -> bool [R, T].

    `reach` [R]: the last position that each sees; None: its own.
    """
    behind = positions[:, None] - slots
    seen = (positions if reach is None else reach)[:, None] >= slots
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
    """q [R, n_heads, d], keys [T, n_kv_heads, d], values [T, n_kv_heads, e], mask [R, T] -> [R, n_heads, e].

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
    return out.masked_fill(sees_broken[..., None, None], torch.nan).flatten(1, 2)


def attend_all(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Every row over all rows: q, keys and values [T, n_heads, d] -> [T, n_heads, d]."""
    q, keys, values = (x.transpose(0, 1) for x in (q, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(q, keys, values, scale=scale).transpose(0, 1)
