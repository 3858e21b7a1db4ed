"""The pool of blocks of one layer group: who holds which block. Ints only, no tensors."""


class OutOfBlocks(Exception):
    """The pool has no free block left."""


class BlockPool:
    """Hands out block numbers 0 … n_blocks-1 and counts who holds each of them."""

    def __init__(self, n_blocks: int) -> None:
        self.references = [0] * n_blocks
        self._free = list(range(n_blocks - 1, -1, -1))

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
