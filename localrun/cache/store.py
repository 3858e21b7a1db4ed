"""What sequences hold of the cache: leases on blocks, backed by the pools and the prefix tree. Ints only."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from localrun.cache.blocks import BlockPool, OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS, Group
from localrun.cache.prefix import Blocks, PrefixTree


@dataclass(eq=False, slots=True)
class Lease:
    """The blocks of one sequence. `copies` (group, from, to) must be carried out before its first step."""

    blocks: list[Blocks] = field(default_factory=list)
    n_cached: int = 0
    copies: list[tuple[int, int, int]] = field(default_factory=list)


class CacheStore:
    """All blocks of one engine. Finished sequences stay in the tree until their blocks are needed."""

    def __init__(self, groups: Sequence[Group], n_blocks: int, keep_prefixes: bool = True) -> None:
        self.groups = tuple(groups)
        self.pools = tuple(BlockPool(n_blocks) for _ in groups)
        self.tree = PrefixTree(self.pools)
        self.keep_prefixes = keep_prefixes

    def open(self, token_ids: Sequence[int]) -> Lease:
        """Lease what is cached of a new sequence, all but its last token, which always has to be computed.

        Raises OutOfBlocks when the one block that may have to be copied is not to be had.
        """
        match = self.tree.match(token_ids)
        usable = min(match.n_tokens, len(token_ids) - 1)
        for group in self.groups:
            usable = min(usable, group.reusable(usable))
        lease = Lease(n_cached=usable)
        n_shared, rest = divmod(usable, BLOCK_TOKENS)
        for blocks in match.blocks[: n_shared + (rest > 0)]:
            lease.blocks.append(tuple(pool.share(block) for pool, block in zip(self.pools, blocks, strict=True)))
        if rest:
            self._copy_last(lease)
        return lease

    def extend(self, lease: Lease, n_tokens: int) -> None:
        """Make room for the first `n_tokens` tokens. Raises OutOfBlocks; what was allocated stays leased."""
        while len(lease.blocks) * BLOCK_TOKENS < n_tokens:
            lease.blocks.append(self._allocate())

    def close(self, lease: Lease, token_ids: Sequence[int]) -> None:
        """Give the blocks back; the tree keeps `token_ids`, all of which must have been computed."""
        if self.keep_prefixes:
            self.tree.insert(token_ids, lease.blocks)
        for blocks in lease.blocks:
            self._release(blocks)
        lease.blocks.clear()

    def _copy_last(self, lease: Lease) -> None:
        """Replace the last leased block, shared and about to be written to, by a copy of our own."""
        shared = lease.blocks[-1]
        try:
            own = self._allocate()
        except OutOfBlocks:
            for blocks in lease.blocks:
                self._release(blocks)
            raise
        lease.blocks[-1] = own
        lease.copies = [(g, a, b) for g, (a, b) in enumerate(zip(shared, own, strict=True))]
        self._release(shared)

    def _allocate(self) -> Blocks:
        while any(pool.n_free == 0 for pool in self.pools):
            if not self.tree.evict_one():
                raise OutOfBlocks
        return tuple(pool.allocate() for pool in self.pools)

    def _release(self, blocks: Blocks) -> None:
        for pool, block in zip(self.pools, blocks, strict=True):
            pool.release(block)
