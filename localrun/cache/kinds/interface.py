"""Kinds of cache: what a layer keeps of a sequence, and how sequences use the blocks. Ints only, no tensors.

A kind of memory is one file beside this one: a CacheKind says what a layer keeps, how many bytes that takes and by
which PoolRules its blocks are used. Store, prefix tree, disk tier and fit ask these, and know no kind by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from localrun.cache.blocks import BlockPool, BlockTable
from localrun.ops.kv import KVCodec

if TYPE_CHECKING:
    from localrun.ops.cache_layer import CacheLayer


class CacheKind(Protocol):
    """The kind of cache of one layer. Layers of one kind and codec share their blocks: they are a Group."""

    def __hash__(self) -> int: ...

    @property
    def title(self) -> str:
        """Name of the kind for people; empty for keys and values."""

    @property
    def window(self) -> int | None:
        """Tokens that a query sees, itself included; None: all."""

    @property
    def sink(self) -> bool:
        """Whether block 0 is seen in addition to the window."""

    @property
    def is_bounded(self) -> bool:
        """Whether the blocks of a sequence stop growing."""

    @property
    def entry_tokens(self) -> int:
        """Tokens that one entry stands for. Blocks hold whole entries."""

    def codec(self, wanted: KVCodec) -> KVCodec:
        """How it is stored where a user wants `wanted`."""

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        """Bytes of one block; a backend's own layout may take more."""

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        """Bytes that one sequence of `n_tokens` holds, in whole blocks."""

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """Blocks worth having for `parallel` sequences of `ctx` tokens, computed `chunk` at a time."""

    def n_left(self, ctx: int) -> int:
        """Blocks that a chat of `ctx` tokens leaves in the tree, as far as the pool has them."""

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        """Parameters of layer `index` of a group for a backend; its queries have `n_heads` heads."""

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        """Those of the group's pool and, where it has one, of its pool of 16-bit blocks; both by number."""


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """Where the tokens of a text are: by logical block, a block of every pool, NO_BLOCK where there is none.

    `ends`: how many tokens of the text the state stands for that a logical block has.
    """

    blocks: Sequence[Sequence[int]]
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class Reuse:
    """The first `n_tokens` tokens are known; computing starts at `start`.

    When `start` is less, the tokens between are replayed: they rebuild what windowed layers lost, and write nothing
    that is stored already. `note` says what was in the way of reusing more, in words for the user.
    """

    n_tokens: int
    start: int
    note: str = ""
    evicted: bool = False  # more of them were known once

    @property
    def replays(self) -> bool:
        return self.start < self.n_tokens


@dataclass(frozen=True, slots=True)
class BranchPoints:
    """Positions where another text may leave this one: where it left what was known, before the question at the end of
    its prompt, and before the answer. At `forks`, ends of blocks, others wait to do so."""

    known: int
    question: int
    answer: int
    forks: tuple[int, ...] = ()


class PoolRules(Protocol):
    """How sequences use the blocks of one pool. A logical block stands for `block_tokens` tokens of a text."""

    @property
    def pool(self) -> int:
        """Its number."""

    @property
    def required(self) -> bool:
        """A node of the prefix tree is of no use without its block here."""

    @property
    def is_rebuilt(self) -> bool:
        """Computing from the start of a reuse on rebuilds what is not there."""

    @property
    def accumulates(self) -> bool:
        """Whether a token changes all that follows: nothing may be computed from inexact tokens."""

    @property
    def keeps_tails(self) -> bool:
        """Whether blocks at the end of a text, and at its branch points, outlast other blocks."""

    def table(self, pool: BlockPool) -> BlockTable:
        """An empty one, for a new sequence."""

    def reusable(self, held: HeldBlocks, n_tokens: int) -> int:
        """How many of the first `n_tokens` tokens can be gone on from."""

    def replays(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        """Whether tokens start … n_tokens-1, computed again, find what they read here."""

    def take(self, table: BlockTable, reuse: Reuse, held: HeldBlocks, writable: Callable[[int], int]) -> None:
        """Fill an empty table with what is reused: whole blocks shared, one that will be written to made `writable`."""

    def extend(
        self, table: BlockTable, start: int, stop: int, points: BranchPoints, allocate: Callable[[], int]
    ) -> None:
        """Room for a step over tokens start … stop-1. Raises OutOfBlocks; what was allocated stays."""

    def skip(self, table: BlockTable, n_tokens: int, allocate: Callable[[], int]) -> None:
        """Let `n_tokens` tokens count as computed, whatever is in the blocks. Raises OutOfBlocks."""

    def retire(self, table: BlockTable, n_computed: int) -> int:
        """Give back what no query reads any more -> the position to go on from, `n_computed` or less."""

    def offers(self, reuse: Reuse, points: BranchPoints, block: int, ended: bool) -> bool:
        """Whether a sequence's logical block goes to the tree; `ended`: it is the last one, which the next turn goes
        on in."""

    def reads(self, n_tokens: int) -> range:
        """Logical blocks that a sequence continued from `n_tokens` tokens reads here, without block 0."""

    def kept(self, points: BranchPoints, block: int) -> Sequence[range]:
        """Runs of logical blocks, the last of them `block`, that outlast others: what is seen from branch points."""

    def most(self, chunk: int) -> int | None:
        """Blocks that one sequence holds at most while it is computed `chunk` tokens at a time; None: all of them."""


def last_block(n_tokens: int, block_tokens: int) -> range:
    """The logical block of the last of these tokens; an empty range for no tokens."""
    last = (n_tokens - 1) // block_tokens
    return range(max(0, last), last + 1)
