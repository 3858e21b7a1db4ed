"""The reference one row at a time (`LOCALRUN_REFERENCE=rows`): slow, but nothing beside a row changes its result.

Every call has a fixed shape: one row, its heads, one block of keys. Blocks fold in ascending order by online softmax
inside absolute units of 512 positions; unit results merge in ascending order; a sink joins the final merge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from localrun.backends.reference.attention import visible
from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.ops import ReferenceOps
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Attention, Linear
from localrun.ops.kv import BLOCK_TOKENS

UNIT_TOKENS = 512
SoftmaxState = tuple[Tensor, Tensor, Tensor]  # running maximum and sum [n_kv_heads, group], weighted values [..., d]


class RowReferenceOps(ReferenceOps):
    """ReferenceOps whose batch, chunking and tiling cannot show in the result, bit for bit."""

    def rms_norm(self, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
        return torch.cat([rms_norm(row, weight, eps) for row in x.split(1)])

    def linear(self, op: Linear) -> tuple[Tensor, ...]:
        if op.act == "none":  # sums and products of two numbers are the same wherever they stand
            return super().linear(op)
        residual = [None] * len(op.a) if op.residual is None else op.residual.split(1)
        per_row = [
            super(RowReferenceOps, self).linear(replace(op, a=row, residual=rest))
            for row, rest in zip(op.a.split(1), residual, strict=True)
        ]
        return tuple(torch.cat(parts) for parts in zip(*per_row, strict=True))

    def times(self, x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
        return torch.cat([F.linear(row, matrix, bias) for row in x.split(1)])

    def times_heads(self, x: Tensor, matrices: Tensor) -> Tensor:
        return torch.cat([super(RowReferenceOps, self).times_heads(row, matrices) for row in x.split(1)])

    def attention(self, op: Attention) -> tuple[Tensor]:
        codec, out = self.pool.codecs[op.layer], self.attention_rows(op)
        reach = self.reach_in(op)
        shape = (self.pool.layers[op.layer].n_kv_heads, -1)  # query heads that share keys stand together

        def grouped(values: Tensor | None) -> Tensor | None:  # of every head
            return None if values is None else values.unflatten(0, shape).contiguous()

        for index, by_block in enumerate(self.rows_of):
            blocks = self.pool.blocks(op.layer, index)
            assert op.window is not None or blocks.from_the_start, "block 0 is missing"
            for own, rows in by_block.items():
                numbers = blocks.numbers(int(reach[rows].max()) // BLOCK_TOKENS)
                held = [[x.transpose(0, 1).contiguous() for x in blocks.block(number, own)] for number in numbers]
                for row, masks in zip(rows, self.masks(op, rows, numbers), strict=True):
                    query = Query(
                        q=op.q[row].unflatten(0, shape).contiguous(),
                        sink_q=None if op.sink_query is None else grouped(op.sink_query[row]),
                        scale=op.scale,
                        softcap=op.softcap,
                        sinks=grouped(op.sinks),
                    )
                    seen = (
                        KeyBlock(number, keys, values, mask)
                        for number, (keys, values), mask in zip(numbers, held, masks, strict=True)
                        if mask is not None
                    )
                    out[row] = query.flash_attend(seen).flatten(0, 1)
        return ((rotate_hadamard(out) if codec.rotates else out).flatten(1),)

    def masks(self, op: Attention, rows: list[int], numbers: Sequence[int]) -> list[list[Tensor | None]]:
        """Which keys of every block [64] each row sees; None where it sees none."""
        firsts = torch.tensor(numbers, device=self.device) * BLOCK_TOKENS
        slots = (firsts[:, None] + torch.arange(BLOCK_TOKENS, device=self.device)).flatten()
        seen = visible(self.positions[rows], slots, op.window, op.sink_window, self.reach_in(op)[rows])
        seen = seen.unflatten(1, (-1, BLOCK_TOKENS))
        some = seen.any(-1).tolist()
        return [[m if s else None for m, s in zip(*row, strict=True)] for row in zip(seen, some, strict=True)]


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Keys [n_kv_heads, 64, d] and values [n_kv_heads, 64, e].

    `mask` [64] says which are seen: a hidden slot may hold anything.
    """

    number: int
    keys: Tensor
    values: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class Query:
    """One row of attention: a query [n_kv_heads, group, d], sinks [n_kv_heads, group], and the rules of its
    instruction."""

    q: Tensor
    sink_q: Tensor | None
    scale: float
    softcap: float | None
    sinks: Tensor | None

    def flash_attend(self, blocks: Iterable[KeyBlock]) -> Tensor:
        """Attention over `blocks`, ascending -> [n_kv_heads, group, e]."""
        units: dict[int, SoftmaxState] = {}
        for block in blocks:
            state = self.state(block)
            unit = block.number * BLOCK_TOKENS // UNIT_TOKENS
            units[unit] = merge(units[unit], state) if unit in units else state
        total, *others = units.values()
        for state in others:
            total = merge(total, state)
        if self.sinks is not None:
            total = merge(total, (self.sinks, torch.ones_like(self.sinks), torch.zeros_like(total[2])))
        return total[2] / total[1].unsqueeze(-1)

    def state(self, block: KeyBlock) -> SoftmaxState:
        """The softmax state of one block."""
        q = self.sink_q if block.number == 0 and self.sink_q is not None else self.q
        scores = (q @ block.keys.mT) * self.scale  # [n_kv_heads, group, 64]
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        scores = scores.masked_fill(~block.mask, -torch.inf)
        top = scores.amax(-1)
        weights = torch.exp(scores - top.unsqueeze(-1))
        return top, weights.sum(-1), weights @ block.values.masked_fill(~block.mask[:, None], 0.0)


def merge(a: SoftmaxState, b: SoftmaxState) -> SoftmaxState:
    """Two softmax states over disjoint keys into one (Milakov and Gimelshein 2018)."""
    top = torch.maximum(a[0], b[0])
    keep, add = torch.exp(a[0] - top), torch.exp(b[0] - top)
    return top, a[1] * keep + b[1] * add, a[2] * keep.unsqueeze(-1) + b[2] * add.unsqueeze(-1)
