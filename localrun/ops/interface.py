"""Interface of a step: everything that changes from one step to the next is in one StepInput.

Shapes: R rows (one per token of the step), S sequences, L rows that want logits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.ops.sampling import Draw, choose, choose_allowed, choose_allowed_of_row, choose_of_row
from localrun.ops.token_counts import TokenCounts

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Angles: TypeAlias = tuple[np.ndarray, np.ndarray]  # cos and sin, f32 [R, dims / 2]


@dataclass(frozen=True, slots=True)
class SequenceInput:
    """One sequence of a step: tokens it holds after the step, and where its blocks are, one entry per layer group.

    Logical block i holds positions 64·i … 64·i+63. Every group has a pool of coded blocks and, where its codec is
    quantised, a ring pool of 16-bit blocks with numbers of its own; a native codec (f32, f16) has the first alone.
    A query at p reads the 16-bit form of logical blocks p // 64 and 0, the codes of all others. -1 stands for a
    block that is not there and that nothing reads. Recurrent layers write the state at the end of logical block
    first[g] + i to table[g][i] unless that is -1, and the one after the last token to the last of them.
    """

    length: int
    table: tuple[Sequence[int], ...]  # coded blocks of logical blocks first[g], first[g] + 1, …
    first: tuple[int, ...]  # logical number of table[g][0]: the blocks below have left the window
    sink: tuple[int, ...] = ()  # coded block of logical block 0 where first[g] > 0; empty: none
    ring: tuple[Sequence[int], ...] = ()  # 16-bit blocks from logical block ring_first on: all that hold a row
    ring_first: int = 0
    ring_sink: tuple[int, ...] = ()  # 16-bit block of logical block 0; with ring_first 0 it is ring[g][0]
    state: tuple[int, ...] = ()  # block with the state before the step, where layers are recurrent; -1: nothing yet
    write_from: tuple[int, ...] = ()  # rows at positions below write 16-bit values, but no codes; empty: all write
    n_bulk: int = 0  # rows at positions below are read in bulk, as cache/bulk.py says

    def block(self, group: int, number: int) -> int:
        """The coded block of logical block `number`."""
        assert number >= self.first[group], f"block {number} has left the window"
        return self.table[group][number - self.first[group]]

    def ring_block(self, group: int, number: int) -> int:
        """The 16-bit block of logical block `number`."""
        assert number >= self.ring_first, f"the ring begins after block {number}"
        return self.ring[group][number - self.ring_first]


@dataclass(frozen=True, slots=True)
class LogitAdjust:
    """Changes to the logits of a request before a token is chosen, by id (OpenAI and CTRL penalties, bias)."""

    seen: TokenCounts = field(default_factory=TokenCounts)  # of prompt and answer: the repeat penalty speaks of its ids
    counts: TokenCounts = field(default_factory=TokenCounts)  # of the answer
    repeat: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)
    temperature: float = 1.0  # of the logsumexp; 0 means 1

    @property
    def counts_tokens(self) -> bool:
        """Whether it changes single logits, by tokens that came or a bias."""
        return bool(self.repeat != 1.0 or self.presence or self.frequency or self.bias)


class CancelFlag:
    """Set from any thread; native code reads it at `address` as an int32."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._flag)

    def set(self) -> None:
        self._flag.value = 1

    def clear(self) -> None:
        self._flag.value = 0

    def is_set(self) -> bool:
        return self._flag.value != 0


@dataclass(frozen=True, slots=True)
class ImageBuffer:
    """Rows of images that a step has in the place of embeddings, and what is added to them after some layers."""

    buffer_row: Sequence[int]  # [R], -1: not a row of an image
    rows: np.ndarray  # f32 [n, hidden]
    added: tuple[np.ndarray, ...] = ()  # [places] of f32 [n, hidden]


@dataclass(slots=True)
class StepInput:
    """Input of one step. `cancel` is looked at between ops; a step cut short commits nothing."""

    token_ids: Sequence[int]  # [R]
    positions: Sequence[int]  # [R]
    row_sequence: Sequence[int]  # [R], index into `sequences`
    sequences: Sequence[SequenceInput]  # [S]
    logits_rows: Sequence[int]  # [L]; a row may be there twice, adjusted and as it is
    adjust: Sequence[LogitAdjust | None] = ()  # [L] or empty
    cos_sin: Sequence[Angles] = ()  # per rope kind
    sink_cos_sin: Sequence[Angles] = ()  # likewise at min(position, sink_window + 63); empty: no sinks
    query_scale: np.ndarray | None = None  # f32 [R]: queries are multiplied by it once they have turned
    images: ImageBuffer | None = None
    given: np.ndarray | None = None  # f32 [R, hidden]: what a layer that drafts reads beside the tokens
    # [R]: the last position that a row sees in layers whose attention has spans: its own, for a row of an image that of
    # the image's last row, which is in the same step. Empty: its own for all.
    reach: Sequence[int] = ()
    draws: Sequence[Draw] = ()  # how the token after each row of logits will be chosen, where that is known
    ahead: StepInput | None = None  # the step after this one if all of it goes on; its token_ids mean nothing
    cancel: CancelFlag = field(default_factory=CancelFlag)

    @property
    def n_rows(self) -> int:
        return len(self.token_ids)


class StepCancelled(Exception):
    """Raised by a program that saw `cancel`; nothing of the step counts."""


@dataclass(frozen=True, slots=True)
class Logits:
    """Logits of a step, until the next step. The full rows stay where they were computed."""

    rows: np.ndarray | Tensor  # f32 [L, vocab], adjusted
    top_ids: np.ndarray  # int32 or int64 [L, ≤256], best first, ties by lower id
    top_values: np.ndarray  # f32 [L, ≤256]
    logsumexp: np.ndarray  # f32 or f64 [L], of rows / temperature
    finite: np.ndarray  # [L], of the logits before adjustment; true or not 0

    @property
    def argmax(self) -> np.ndarray:
        """[L]"""
        ids: np.ndarray = self.top_ids[:, 0]
        return ids

    def row(self, index: int) -> np.ndarray:
        """All logits of a row in main memory, f32 [vocab]."""
        row = self.rows[index]
        return row if isinstance(row, np.ndarray) else row.cpu().numpy()

    def logprob(self, row: int, token_id: int) -> float:
        """ln of a token's probability in a row whose temperature is 1."""
        return float(self.rows[row, token_id]) - float(self.logsumexp[row])

    def choose(self, draws: Sequence[Draw]) -> list[int]:
        """The token of every draw: of its row's candidates, or of the whole row where they cannot decide.

        Here by the plain chain, row by row. A backend may have its own way, with the same tokens unless a draw falls on
        the border of two, where the last places of sums decide.
        """
        return [self.choose_one(draw) for draw in draws]

    def choose_one(self, draw: Draw) -> int:
        if draw.temperature <= 0:
            return int(self.argmax[draw.row])
        ids, values, logsumexp = self.top_ids[draw.row], self.top_values[draw.row], float(self.logsumexp[draw.row])
        token = choose(ids, values, logsumexp, len(ids) == self.rows.shape[-1], draw)
        return choose_of_row(self.row(draw.row), logsumexp, draw) if token is None else token

    def choose_allowed(self, draw: Draw, mask: np.ndarray) -> int:
        """The token of a draw among those that a mask allows, uint8 [vocab / 8, rounded up]; some have to be."""
        best = self.top_ids[draw.row]
        token = choose_allowed(best, self.top_values[draw.row], mask, draw)
        return choose_allowed_of_row(self.row(draw.row), best, mask, draw) if token is None else token

    def copied(self, rows: Sequence[int]) -> Logits:
        """A copy of some rows, which the next step leaves as they are."""
        wanted = np.asarray(rows)
        found = (self.top_ids[wanted], self.top_values[wanted], self.logsumexp[wanted], self.finite[wanted])
        return Logits(np.stack([self.row(row) for row in rows]), *found)


@dataclass(frozen=True, slots=True)
class PlainKV:
    """Keys or values of one layer in one block, as every backend understands them."""

    codes: Tensor  # [64, n_kv_heads, head_dim]: int8 (of -8 … 7 with 4 bit), or the f16 or f32 numbers
    scale: Tensor | None = None  # f16 [64, n_kv_heads, scale groups]; None with numbers
    offset: Tensor | None = None  # likewise, with 4 bit: an element is offset + scale · code

    def to(self, device: torch.device) -> PlainKV:
        """A copy on `device`."""
        scale, offset = (x if x is None else x.to(device, copy=True) for x in (self.scale, self.offset))
        return PlainKV(self.codes.to(device, copy=True), scale, offset)
