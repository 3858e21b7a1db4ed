"""Blocks of one pool: who holds which, and where a sequence's are. Ints only, no tensors."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

NO_BLOCK = -1


class OutOfBlocks(Exception):
    """The pool has no free block left."""


class BlockPool:
    """Hands out block numbers 0 … n_blocks-1 and counts who holds each of them."""

    def __init__(self, n_blocks: int) -> None:
        self.references = [0] * n_blocks
        self._free = list(range(n_blocks - 1, -1, -1))
        self.n_touched = 0  # blocks that have ever been used, and so take memory

    @property
    def n_blocks(self) -> int:
        return len(self.references)

    @property
    def n_free(self) -> int:
        return len(self._free)

    def allocate(self) -> int:
        """A free block, now held once. Raises OutOfBlocks."""
        if not self._free:
            raise OutOfBlocks
        block = self._free.pop()
        self.references[block] = 1
        self.n_touched = max(self.n_touched, block + 1)
        return block

    def share(self, block: int) -> int:
        """Hold a block that is already held."""
        assert self.references[block] > 0, f"block {block} is free"
        self.references[block] += 1
        return block

    def release(self, block: int) -> None:
        """Let go of a block; the last holder frees it."""
        assert self.references[block] > 0, f"block {block} is free"
        self.references[block] -= 1
        if self.references[block] == 0:
            self._free.append(block)


@dataclass(eq=False, slots=True)
class BlockTable:
    """The blocks of one sequence in one pool: logical blocks first, first + 1, …, and block 0 where it stays longer."""

    pool: BlockPool
    first: int = 0
    blocks: "array[int]" = field(default_factory=lambda: array("i"))  # native code reads it where it lies
    sink: int = NO_BLOCK  # logical block 0, once it is no longer among `blocks`

    @property
    def end(self) -> int:
        return self.first + len(self.blocks)

    def at(self, logical: int) -> int:
        """The block that holds a logical block; NO_BLOCK where there is none."""
        if self.first <= logical < self.end:
            return self.blocks[logical - self.first]
        return self.sink if logical == 0 else NO_BLOCK

    @property
    def before(self) -> int:
        """The block with the state before the next step; NO_BLOCK where there is none."""
        return NO_BLOCK

    def end_of(self, logical: int, whole: int) -> int:
        """How many tokens of the text a logical block's content stands for, where it is not all `whole` of them."""
        return whole

    def held(self) -> list[int]:
        """Every block it holds."""
        return [*self.blocks, self.sink] if self.sink != NO_BLOCK else [*self.blocks]

    def extend_to(self, end: int, allocate: Callable[[], int]) -> None:
        """Room up to logical block `end`. What was allocated stays where there is no more."""
        while self.end < end:
            self.blocks.append(allocate())

    def drop_below(self, logical: int, keep_sink: bool) -> None:
        """Give the blocks before a logical block back; block 0 stays as the sink if it is to be kept."""
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
        """Give everything back."""
        self.drop_below(self.end, keep_sink=False)
        self.drop_sink()
