"""Whether a sequence finds room beside those that run. Ints only, no tensors."""

from collections.abc import Sequence

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import RING_BLOCKS, CacheStore


def has_room(
    store: CacheStore, caches: Sequence[SequenceCache], token_ids: Sequence[int], chunk: int, to_grow: int
) -> bool:
    """Whether all of `token_ids`, computed `chunk` at a time, and `to_grow` more tokens of all find room at once.

    Blocks that only the tree holds are room; those it shares with one that runs are there already.
    """
    path = store.tree.match(token_ids).path
    n_blocks = len(token_ids) // BLOCK_TOKENS + 1
    for number, (pool, group) in enumerate(zip(store.pools, store.group_of, strict=True)):
        most = n_blocks
        if number >= len(store.groups):
            most = RING_BLOCKS + 1 + chunk // BLOCK_TOKENS
        elif group.window is not None:
            most = (group.window + chunk) // BLOCK_TOKENS + 3
        held = {block for cache in caches for block in (*cache.tables[number].blocks, cache.tables[number].sink)}
        held.discard(NO_BLOCK)
        n_shared = sum(node.blocks[number] in held for node in path[-most:])
        more = min(len(caches) + to_grow // BLOCK_TOKENS, (len(caches) + 1) * most)
        if min(n_blocks, most) - n_shared + more > pool.n_blocks - len(held):
            return False
    return True
