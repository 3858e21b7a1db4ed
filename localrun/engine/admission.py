"""Admission: whether a sequence fits beside the running ones. Ints only, no tensors."""

from collections.abc import Sequence

from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import CacheStore


def has_room(
    store: CacheStore, caches: Sequence[SequenceCache], n_tokens: int, reusable: Sequence[int], chunk: int, to_grow: int
) -> bool:
    """Whether `n_tokens` tokens, computed `chunk` at a time, and `to_grow` more tokens of all find room at once.

    Blocks that only the tree holds are room; those that it shares with one that runs are there already, as far as they
    are `reusable`: keys of the first tokens.
    """
    path = store.tree.match(reusable).path
    n_blocks = n_tokens // store.block_tokens + 1
    for rules, pool in zip(store.rules, store.pools, strict=True):
        most = rules.most(chunk) or n_blocks
        held = {block for cache in caches for block in cache.tables[rules.pool].held()}
        n_shared = sum(node.blocks[rules.pool] in held for node in path[-most:])
        more = min(len(caches) + to_grow // store.block_tokens, (len(caches) + 1) * most)
        if min(n_blocks, most) - n_shared + more > pool.n_blocks - len(held):
            return False
    return True
