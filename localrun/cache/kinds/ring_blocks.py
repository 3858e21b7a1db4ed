"""The ring: 16-bit blocks beside coded ones, for the end of every sequence, which is read uncoded.

Ints only, no tensors. A query reads its own block in 16 bits, and block 0 where a layer says so.
"""

from collections.abc import Callable, Sequence

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable
from localrun.cache.kinds.interface import BranchPoints, HeldBlocks, Reuse, last_block
from localrun.cache.kinds.token_blocks import TokenBlocks

RING_BLOCKS = 2  # at the end of a sequence that stay after a step: a rollback finds its block there


@dataclass(frozen=True, slots=True)
class RingBlocks:
    """Rules of pool `pool` of a group with the coded blocks `coded`; `reads_first`: block 0 is read in 16 bits."""

    pool: int
    coded: TokenBlocks
    reads_first: bool = True
    required = False
    is_rebuilt = True
    accumulates = False
    keeps_tails = False

    @property
    def block_tokens(self) -> int:
        return self.coded.block_tokens

    def sees_first(self, n_tokens: int) -> bool:
        """Whether a sequence continued from `n_tokens` tokens reads block 0 here."""
        return self.reads_first and (self.coded.sink or self.coded.first_block(n_tokens) == 0)

    def table(self, pool: BlockPool) -> BlockTable:
        return BlockTable(pool)

    def reusable(self, held: HeldBlocks, n_tokens: int) -> int:
        if n_tokens and self.sees_first(n_tokens) and held.blocks[0][self.pool] == NO_BLOCK:
            return 0
        block, rest = divmod(n_tokens, self.block_tokens)
        return n_tokens - rest if rest and held.blocks[block][self.pool] == NO_BLOCK else n_tokens

    def replays(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        reads = self.reads_first and self.coded.first_block(start) == 0 < start
        return not reads or held.blocks[0][self.pool] != NO_BLOCK

    def take(self, table: BlockTable, reuse: Reuse, held: HeldBlocks, writable: Callable[[int], int]) -> None:
        n_full, rest = divmod(reuse.n_tokens, self.block_tokens)
        table.first = reuse.start // self.block_tokens if reuse.replays else n_full
        if table.first > 0 and self.sees_first(reuse.start):
            table.sink = table.pool.share(held.blocks[0][self.pool])
        if rest and not reuse.replays:
            table.blocks.append(writable(held.blocks[n_full][self.pool]))

    def extend(
        self, table: BlockTable, start: int, stop: int, points: BranchPoints, allocate: Callable[[], int]
    ) -> None:
        if not table.blocks:
            table.first = start // self.block_tokens
        table.extend_to(-(-stop // self.block_tokens), allocate)

    def skip(self, table: BlockTable, n_tokens: int, allocate: Callable[[], int]) -> None:
        table.first = n_tokens // self.block_tokens
        if table.first > 0 and self.sees_first(n_tokens):
            table.sink = allocate()
        if n_tokens % self.block_tokens:
            table.blocks.append(allocate())

    def retire(self, table: BlockTable, n_computed: int) -> int:
        last = (n_computed - 1) // self.block_tokens
        table.drop_below(last + 1 - RING_BLOCKS, keep_sink=self.reads_first)
        if not self.sees_first(n_computed):
            table.drop_sink()
        return n_computed

    def offers(self, reuse: Reuse, points: BranchPoints, block: int, ended: bool) -> bool:
        """Whether another text may continue inside this block: after the known prefix, or at the answer."""
        inside = (points.known // self.block_tokens, points.answer // self.block_tokens)
        wanted = ended or block in inside or (self.reads_first and block == 0)
        return wanted and self.coded.offers(reuse, points, block, ended)

    def reads(self, n_tokens: int) -> range:
        return last_block(n_tokens, self.block_tokens)

    def kept(self, points: BranchPoints, block: int) -> Sequence[range]:
        return ()

    def most(self, chunk: int) -> int | None:
        return RING_BLOCKS + 1 + chunk // self.block_tokens
