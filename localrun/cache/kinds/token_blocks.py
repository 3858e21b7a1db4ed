"""Blocks that hold something for every token: keys and values, latents, compressed entries. Ints only."""

from collections.abc import Callable, Sequence

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable
from localrun.cache.kinds.interface import BranchPoints, HeldBlocks, Reuse


@dataclass(frozen=True, slots=True)
class TokenBlocks:
    """Rules of pool `pool`. A query sees `window` tokens with itself (None: all), and block 0 with `sink`."""

    pool: int
    block_tokens: int
    window: int | None = None
    sink: bool = False
    accumulates = False

    @property
    def required(self) -> bool:
        return not self.is_rebuilt

    @property
    def is_rebuilt(self) -> bool:
        """Whether the window is the model's own, so that a bounded number of tokens rebuilds it."""
        return self.window is not None and not self.sink

    @property
    def keeps_tails(self) -> bool:
        return self.is_rebuilt

    def first_block(self, position: int) -> int:
        """The oldest logical block that a query at `position` or later sees, except block 0 of a sink."""
        return 0 if self.window is None else max(0, position - self.window + 1) // self.block_tokens

    def table(self, pool: BlockPool) -> BlockTable:
        return BlockTable(pool)

    def reusable(self, held: HeldBlocks, n_tokens: int) -> int:
        if n_tokens == 0 or (self.sink and held.blocks[0][self.pool] == NO_BLOCK):
            return 0
        block = (n_tokens - 1) // self.block_tokens
        while block >= self.first_block(n_tokens):
            if held.blocks[block][self.pool] == NO_BLOCK:
                n_tokens = block * self.block_tokens
            block -= 1
        return n_tokens

    def replays(self, held: HeldBlocks, start: int, n_tokens: int) -> bool:
        seen = range(self.first_block(start), self.first_block(n_tokens))
        return self.is_rebuilt or all(held.blocks[block][self.pool] != NO_BLOCK for block in seen)

    def take(self, table: BlockTable, reuse: Reuse, held: HeldBlocks, writable: Callable[[int], int]) -> None:
        n_full, rest = divmod(reuse.n_tokens, self.block_tokens)
        replayed = reuse.replays and self.is_rebuilt
        table.first = reuse.start // self.block_tokens if replayed else self.first_block(reuse.start)
        if table.first > 0 and self.sink:
            table.sink = table.pool.share(held.blocks[0][self.pool])
        if not replayed:
            table.blocks.extend(table.pool.share(row[self.pool]) for row in held.blocks[table.first : n_full])
            if rest:
                table.blocks.append(writable(held.blocks[n_full][self.pool]))

    def extend(
        self, table: BlockTable, start: int, stop: int, points: BranchPoints, allocate: Callable[[], int]
    ) -> None:
        table.extend_to(-(-stop // self.block_tokens), allocate)

    def skip(self, table: BlockTable, n_tokens: int, allocate: Callable[[], int]) -> None:
        table.first = self.first_block(n_tokens)
        if table.first > 0 and self.sink:
            table.sink = allocate()
        table.extend_to(-(-n_tokens // self.block_tokens), allocate)

    def retire(self, table: BlockTable, n_computed: int) -> int:
        table.drop_below(self.first_block(n_computed), keep_sink=self.sink)
        return n_computed

    def offers(self, reuse: Reuse, points: BranchPoints, block: int, ended: bool) -> bool:
        """Whether `block` may be shared: a replay is exact only from the unknown tokens on."""
        return not (reuse.replays and self.is_rebuilt) or block >= self.first_block(reuse.n_tokens)

    def reads(self, n_tokens: int) -> range:
        return range(self.first_block(n_tokens), -(-n_tokens // self.block_tokens))

    def kept(self, points: BranchPoints, block: int) -> Sequence[range]:
        if not self.keeps_tails:
            return ()
        known = points.known // self.block_tokens
        places = [points.known] if points.known and known <= block <= known + 1 else []
        if block <= points.answer // self.block_tokens:
            places += [place for place in (points.question, points.answer) if self.first_block(place) <= block]
        forks = [fork for fork in points.forks if self.first_block(fork) <= block < fork // self.block_tokens]
        return [range(self.first_block(place), block + 1) for place in (*places, *forks)]

    def most(self, chunk: int) -> int | None:
        return None if self.window is None else (self.window + chunk) // self.block_tokens + 3
