"""Blocks of one pool and their references, and the block table of a sequence. Ints only, no tensors."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import field

from localrun.base.dataclass import dataclass

NO_BLOCK = -1


class OutOfBlocks(Exception):
    """The pool has no free block."""


class BlockPool:
    """Allocator of block numbers 0 … n_blocks-1 with a reference count for each."""

    def __init__(self, n_blocks: int) -> None:
        self.references = [0] * n_blocks
        self._free = list(range(n_blocks - 1, -1, -1))
        self.n_touched = 0  # blocks that have ever been written to, and so take memory

    @property
    def n_blocks(self) -> int:
        return len(self.references)

    @property
    def n_free(self) -> int:
        return len(self._free)

    def allocate(self) -> int:
        """Take a free block, with one reference. Raises OutOfBlocks."""
        if not self._free:
            raise OutOfBlocks
        block = self._free.pop()
        self.references[block] = 1
        self.n_touched = max(self.n_touched, block + 1)
        return block

    def touch_next(self) -> int:
        """Count the block that is allocated next as touched; NO_BLOCK where it is, or where there is none."""
        if not self._free or self._free[-1] < self.n_touched:
            return NO_BLOCK
        self.n_touched = self._free[-1] + 1
        return self._free[-1]

    def share(self, block: int) -> int:
        """Add a reference to a block in use."""
        assert self.references[block] > 0, f"block {block} is free"
        self.references[block] += 1
        return block

    def release(self, block: int) -> None:
        """Drop a reference; the last one frees the block."""
        assert self.references[block] > 0, f"block {block} is free"
        self.references[block] -= 1
        if self.references[block] == 0:
            self._free.append(block)


@dataclass(eq=False, slots=True)
class BlockTable:
    """Blocks of one sequence in one pool: logical blocks first, first + 1, …, and block 0 where it stays longer."""

    pool: BlockPool
    first: int = 0
    blocks: "array[int]" = field(default_factory=lambda: array("i"))  # native code reads it where it lies
    sink: int = NO_BLOCK  # logical block 0, once it is no longer among `blocks`

    @property
    def end(self) -> int:
        return self.first + len(self.blocks)

    def at(self, logical: int) -> int:
        """The block of a logical block; NO_BLOCK where there is none."""
        if self.first <= logical < self.end:
            return self.blocks[logical - self.first]
        return self.sink if logical == 0 else NO_BLOCK

    @property
    def before(self) -> int:
        """The block with the state before the next step; NO_BLOCK where there is none."""
        return NO_BLOCK

    def end_of(self, logical: int, whole: int) -> int:
        """Number of tokens of the text that a logical block covers, where it does not cover all `whole`."""
        return whole

    def held(self, end: int | None = None) -> list[int]:
        """Every block of the table; with `end` without logical blocks from there on, which wait for tokens to come."""
        blocks = self._before(end)
        return [*blocks, self.sink] if self.sink != NO_BLOCK else [*blocks]

    def _before(self, end: int | None) -> Sequence[int]:
        """Blocks of the text before logical block `end`; None: all."""
        return self.blocks if end is None else self.blocks[: max(end - self.first, 0)]

    def extend_to(self, end: int, allocate: Callable[[], int]) -> None:
        """Allocate up to logical block `end`. What was allocated stays when the pool runs out."""
        while self.end < end:
            self.blocks.append(allocate())

    def reserve_ahead(self, allocate: Callable[[], int]) -> None:
        """Allocate for a step that begins while the one before it is under way, and goes on by a token in the same
        block. Raises OutOfBlocks."""

    def ahead(self) -> "BlockTable":
        """The table as such a step reads it."""
        return self

    def drop_below(self, logical: int, keep_sink: bool) -> None:
        """Release the blocks before a logical block; block 0 stays as the sink with `keep_sink`."""
        n = min(logical - self.first, len(self.blocks))
        if n <= 0:
            return
        gone = self.blocks[:n]
        del self.blocks[:n]
        if self.first == 0 and keep_sink:
            self.sink, gone = gone[0], gone[1:]
        self.first += n
        for block in gone:
            self.pool.release(block)

    def drop_sink(self) -> None:
        if self.sink != NO_BLOCK:
            self.pool.release(self.sink)
            self.sink = NO_BLOCK

    def clear(self) -> None:
        """Release every block."""
        self.drop_below(self.end, keep_sink=False)
        self.drop_sink()
