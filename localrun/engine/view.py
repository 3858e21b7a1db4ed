"""What the cache holds of one sequence, for people to look at. No tensors."""

from collections.abc import Container
from dataclasses import dataclass

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.prefix import Node
from localrun.cache.store import CacheStore
from localrun.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class StoreView:
    """The blocks of the last sequence, one text a group (see GroupView.states), and what all pools hold."""

    n_tokens: int
    states: tuple[str, ...]
    used_blocks: int
    total_blocks: int
    tree_tokens: int


def view_store(store: CacheStore, n_tokens: int, states: tuple[str, ...]) -> StoreView:
    coded = store.pools[: len(store.groups)]
    total, free = sum(pool.n_blocks for pool in coded), sum(pool.n_free for pool in coded)
    return StoreView(n_tokens, states, total - free, total, store.tree.n_tokens)


def block_states(store: CacheStore, sequence: Sequence, restored: Container[Node] = ()) -> tuple[str, ...]:
    """One letter for each block of a sequence that has its lease, by group; `restored` nodes came from the disk."""
    lease = sequence.lease
    if lease is None:
        return ("",) * len(store.groups)
    blocks = range(-(-sequence.n_computed // BLOCK_TOKENS))
    states = []
    for group, table in zip(store.groups, lease.tables, strict=False):
        n_known = lease.hit.start if group.replayable else lease.hit.n_tokens
        from_disk = {block for block, node in enumerate(lease.path) if node in restored}
        reused = [
            "c" if (block + 1) * BLOCK_TOKENS > n_known else "d" if block in from_disk else "r" for block in blocks
        ]
        states.append(
            "".join("w" if table.at(b) == NO_BLOCK else state for b, state in zip(blocks, reused, strict=True))
        )
    return tuple(states)
