"""Layers with a state: linear attention and state space models. Ints only, no tensors.

A state stands for all tokens before it, so it is shared at the end of a text or block, and never cut. A sequence reads
one block, writes others, and switches when a step is committed: a step that is cancelled, or accepted in part, leaves
the state it began with. A step that begins while the one before it is under way writes a third. States at the ends of
some blocks stay as checkpoints; a text that continues between two of them is computed from the earlier one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable, OutOfBlocks
from localrun.cache.kinds.interface import BranchPoints, HeldBlocks, PoolRules, Reuse, last_block
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec

CHECKPOINT_TOKENS = 1024  # between states that are kept on the way through a long text
BRANCH_STATES = 4  # checkpoints worth having of a short text: its end, its prompt's end, its question, one before
KEPT_STATES = 12  # at most, beside those of running sequences
OWN_STATES = 2  # of a sequence: the one it goes on from, and the one a step writes


@dataclass(frozen=True, slots=True)
class Recurrent:
    """A state of `state_size` f32 numbers per layer, whatever the length of the text."""

    state_size: int
    title = "states"
    window = None
    sink = False
    is_bounded = True
    entry_tokens = 1

    def codec(self, wanted: KVCodec) -> KVCodec:
        return KV_CODECS["f32"]

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        return 4 * self.state_size

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return 4 * self.state_size

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """States of running sequences, and checkpoints: of a long text, and of branch points."""
        return parallel * OWN_STATES + min(KEPT_STATES, -(-ctx // CHECKPOINT_TOKENS) + BRANCH_STATES)

    def n_left(self, ctx: int) -> int:
        """Checkpoints along the text, before the question, before the answer, and at its end."""
        return (ctx - 1) // CHECKPOINT_TOKENS + 3

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        return CacheLayer(group, index, n_heads, 0, 0, state_size=self.state_size)

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        return [StateBlocks(pool, block_tokens)]

    @classmethod
    def delta_net(cls, n_key_heads: int, n_value_heads: int, key_dim: int, value_dim: int, taps: int) -> Recurrent:
        """Gated DeltaNet: the inputs of a short convolution of `taps`, and one matrix per value head."""
        channels = 2 * n_key_heads * key_dim + n_value_heads * value_dim
        return cls((taps - 1) * channels + n_value_heads * key_dim * value_dim)

    @classmethod
    def mamba(cls, inner_size: int, state_size: int, taps: int, n_groups: int = 0) -> Recurrent:
        """Mamba 1 (no groups) and 2: the inputs of the convolution, and `state_size` numbers per channel."""
        return cls((taps - 1) * (inner_size + 2 * n_groups * state_size) + inner_size * state_size)


@dataclass(eq=False, slots=True)
class StateTable(BlockTable):
    """The state of a sequence after `n_tokens` tokens, and in `blocks` those that a step up to token `stop` writes.

    A step writes the state at the end of logical block first + i to blocks[i], NO_BLOCK where it is not wanted, and the
    state after its last token to the last of them.
    """

    block_tokens: int = BLOCK_TOKENS
    state: int = NO_BLOCK  # NO_BLOCK: nothing is computed
    n_tokens: int = 0
    stop: int = 0
    spare: int = NO_BLOCK  # for the last state of the next step, which may begin ahead; not among those held

    @property
    def last(self) -> int:
        """Logical block of the state; -1 before the first."""
        return (self.n_tokens - 1) // self.block_tokens

    def at(self, logical: int) -> int:
        if self.first <= logical < self.end:
            return self.blocks[logical - self.first]
        return self.state if logical == self.last else NO_BLOCK

    @property
    def before(self) -> int:
        return self.state

    def end_of(self, logical: int, whole: int) -> int:
        return self.n_tokens if logical == self.last else whole

    def take_spare(self) -> int:
        spare, self.spare = self.spare, NO_BLOCK
        return spare

    def reserve_ahead(self, allocate: Callable[[], int]) -> None:
        if self.spare == NO_BLOCK:
            self.spare = allocate()

    def ahead(self) -> StateTable:
        state, first, blocks = self.blocks[-1], self.stop // self.block_tokens, array("i", [self.spare])
        return StateTable(self.pool, first, blocks, block_tokens=self.block_tokens, state=state, n_tokens=self.stop)

    def held(self, end: int | None = None) -> list[int]:
        return [block for block in (self.state, *self._before(end)) if block != NO_BLOCK]

    def change_to(self, block: int, n_tokens: int) -> None:
        """Switch to the state after `n_tokens` tokens in `block`, and release the one before."""
        self.pool.share(block)
        if self.state != NO_BLOCK:
            self.pool.release(self.state)
        self.state, self.n_tokens = block, n_tokens

    def drop_written(self) -> None:
        """Release the blocks that a step was to write."""
        for block in self.blocks:
            if block != NO_BLOCK:
                self.pool.release(block)
        del self.blocks[:]

    def clear(self) -> None:
        self.drop_written()
        for block in (self.state, self.take_spare()):
            if block != NO_BLOCK:
                self.pool.release(block)
        self.state, self.n_tokens = NO_BLOCK, 0


@dataclass(frozen=True, slots=True)
class StateBlocks:
    """Rules of pool number `pool`: a block is one state of all layers of the group."""

    pool: int
    block_tokens: int
    required = False
    is_rebuilt = True
    accumulates = True
    keeps_tails = True

    def table(self, pool: BlockPool) -> StateTable:
        return StateTable(pool, block_tokens=self.block_tokens)

    def reusable(self, held: HeldBlocks, n_tokens: int) -> int:
        """Length of the longest prefix for which a state exists."""
        for block in range((n_tokens - 1) // self.block_tokens, -1, -1):
            if held.blocks[block][self.pool] != NO_BLOCK and held.ends[block] <= n_tokens:
                return held.ends[block]
        return 0

    def replays(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        return self.reusable(held, start) == start

    def take(self, table: BlockTable, reuse: Reuse, held: HeldBlocks, writable: Callable[[int], int]) -> None:
        assert isinstance(table, StateTable)
        if reuse.start:
            block = held.blocks[(reuse.start - 1) // self.block_tokens][self.pool]
            table.state, table.n_tokens = table.pool.share(block), reuse.start

    def extend(
        self, table: BlockTable, start: int, stop: int, points: BranchPoints, allocate: Callable[[], int]
    ) -> None:
        """Allocate for a step; checkpoints are left out where there is no room for them."""
        assert isinstance(table, StateTable)
        assert table.n_tokens == start, f"the state is of {table.n_tokens} tokens, the step begins at {start}"
        table.drop_written()
        table.first, table.stop = start // self.block_tokens, stop
        last = (stop - 1) // self.block_tokens
        spare = table.take_spare()
        table.blocks.extend([NO_BLOCK] * (last - table.first) + [allocate() if spare == NO_BLOCK else spare])
        with suppress(OutOfBlocks):
            for block in range(last - 1, table.first - 1, -1):
                if self.is_checkpoint(points, block):
                    table.blocks[block - table.first] = allocate()

    def skip(self, table: BlockTable, n_tokens: int, allocate: Callable[[], int]) -> None:
        assert isinstance(table, StateTable)
        if n_tokens:
            table.state, table.n_tokens = allocate(), n_tokens

    def retire(self, table: BlockTable, n_computed: int) -> int:
        """Switch to the last written state of at most `n_computed` tokens."""
        assert isinstance(table, StateTable)
        for number, block in reversed([*enumerate(table.blocks, table.first)]):
            end = min((number + 1) * self.block_tokens, table.stop)
            if block != NO_BLOCK and end <= n_computed:
                table.change_to(block, end)
                break
        table.drop_written()
        return table.n_tokens

    def offers(self, reuse: Reuse, points: BranchPoints, block: int, ended: bool) -> bool:
        return ended or self.is_checkpoint(points, block)

    def reads(self, n_tokens: int) -> range:
        return last_block(n_tokens, self.block_tokens)

    def kept(self, points: BranchPoints, block: int) -> Sequence[range]:
        return [range(block, block + 1)] if self.is_before(points, block) else ()

    def most(self, chunk: int) -> int | None:
        return OWN_STATES

    def is_checkpoint(self, points: BranchPoints, block: int) -> bool:
        """Whether the state at the end of a logical block is worth keeping."""
        return (block + 1) * self.block_tokens % CHECKPOINT_TOKENS == 0 or self.is_before(points, block)

    def is_before(self, points: BranchPoints, block: int) -> bool:
        """Whether the block is the last whole one before a branch point."""
        places = (points.known, points.question, points.answer, *points.forks)
        return block + 1 in {place // self.block_tokens for place in places}
