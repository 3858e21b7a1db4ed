"""Kinds of cache: what a layer stores of a sequence, and how sequences use the blocks. Ints only, no tensors.

A kind is one file in this folder: a CacheKind says what a layer stores, how many bytes that takes, and by which
PoolRules its blocks are used. Store, prefix tree, disk cache and fit ask these, and know no kind by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from localrun.base.dataclass import dataclass
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
        """The codec that the kind uses for the user's `wanted`."""

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        """Bytes of one block; a backend's own layout may take more."""

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        """Bytes that one sequence of `n_tokens` holds, in whole blocks."""

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """Useful number of blocks for `parallel` sequences of `ctx` tokens, computed `chunk` at a time."""

    def n_left(self, ctx: int) -> int:
        """Blocks that a chat of `ctx` tokens leaves in the tree, as far as the pool has them."""

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        """Parameters of layer `index` of a group for a backend; its queries have `n_heads` heads."""

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        """Rules of the group's pool and, where it has one, of its pool of 16-bit blocks; both by number."""


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """The blocks of a text: for each logical block, a block of every pool, NO_BLOCK where there is none.

    `ends`: number of tokens of the text covered by the state of each logical block.
    """

    blocks: Sequence[Sequence[int]]
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class Reuse:
    """The first `n_tokens` tokens are known; computing starts at `start`.

    When `start` is less, the tokens between are replayed: they rebuild what windowed layers lost, and write nothing
    that is stored already. `difference` and `note` say why no more was reused, in words for the user.
    """

    n_tokens: int
    start: int
    difference: str = ""  # where the prompt differs from what was kept, if nothing else cuts the match short
    note: str = ""
    evicted: bool = False  # more of them were known once

    @property
    def replays(self) -> bool:
        return self.start < self.n_tokens


@dataclass(frozen=True, slots=True)
class BranchPoints:
    """Positions where another text may branch off.

    Where this text left the known prefix, before the question at the end of its prompt, and before the answer. At
    `forks`, ends of blocks, other sequences wait to branch.
    """

    known: int
    question: int
    answer: int
    forks: tuple[int, ...] = ()


class PoolRules(Protocol):
    """Rules for the blocks of one pool. A logical block stands for `block_tokens` tokens of a text."""

    @property
    def pool(self) -> int:
        """Number of the pool."""

    @property
    def required(self) -> bool:
        """Whether a node of the prefix tree is useless without its block here."""

    @property
    def is_rebuilt(self) -> bool:
        """Whether computing from the start of a reuse on rebuilds missing blocks."""

    @property
    def accumulates(self) -> bool:
        """Whether a token changes all that follows, so that nothing may be computed from inexact tokens."""

    @property
    def keeps_tails(self) -> bool:
        """Whether blocks at the end of a text, and at its branch points, outlast other blocks."""

    def table(self, pool: BlockPool) -> BlockTable:
        """An empty block table for a new sequence."""

    def reusable(self, held: HeldBlocks, n_tokens: int) -> int:
        """Number of leading tokens, at most `n_tokens`, from which a text can continue."""

    def replays(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        """Whether tokens start … n_tokens-1, computed again, find everything they read here."""

    def take(self, table: BlockTable, reuse: Reuse, held: HeldBlocks, writable: Callable[[int], int]) -> None:
        """Fill an empty table with reused blocks: whole ones shared, one that will be written to made `writable`."""

    def extend(
        self, table: BlockTable, start: int, stop: int, points: BranchPoints, allocate: Callable[[], int]
    ) -> None:
        """Allocate for a step over tokens start … stop-1. Raises OutOfBlocks; what was allocated stays."""

    def skip(self, table: BlockTable, n_tokens: int, allocate: Callable[[], int]) -> None:
        """Count `n_tokens` tokens as computed, whatever the blocks hold. Raises OutOfBlocks."""

    def retire(self, table: BlockTable, n_computed: int) -> int:
        """Release what no query reads any more. Returns the position to continue from, at most `n_computed`."""

    def offers(self, reuse: Reuse, points: BranchPoints, block: int, ended: bool) -> bool:
        """Whether a logical block goes to the tree; `ended`: it is the last, where the next turn continues."""

    def reads(self, n_tokens: int) -> range:
        """Logical blocks that a sequence continued from `n_tokens` tokens reads here, without block 0."""

    def kept(self, points: BranchPoints, block: int) -> Sequence[range]:
        """Runs of logical blocks ending in `block` that outlast others: what branch points see."""

    def most(self, chunk: int) -> int | None:
        """The most blocks of one sequence while it is computed `chunk` tokens at a time; None: all of them."""


def last_block(n_tokens: int, block_tokens: int) -> range:
    """The logical block of the last of these tokens; an empty range for no tokens."""
    last = (n_tokens - 1) // block_tokens
    return range(max(0, last), last + 1)
