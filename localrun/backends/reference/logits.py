"""Logits of a step from raw ones: checked, adjusted by id, with the best picked out."""

from collections.abc import Sequence

import torch
from torch import Tensor

from localrun.ops.interface import LogitAdjust, Logits
from localrun.ops.largest_step import MAX_CANDIDATES


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
