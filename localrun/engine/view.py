"""View of one sequence in the cache, for display. No tensors."""

from collections.abc import Container, Sequence

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK
from localrun.cache.node import Node
from localrun.cache.store import CacheStore
from localrun.engine.generation import GenerationState


@dataclass(frozen=True, slots=True)
class StoreView:
    """The blocks of the last sequence, one text a group (see GroupView.states), and what all pools hold.

    Bytes: of that sequence, of all blocks in use, and of all blocks that were ever used and so take memory.
    """

    n_tokens: int
    states: tuple[str, ...]
    used_blocks: int
    total_blocks: int
    tree_tokens: int
    chat_bytes: int
    used_bytes: int
    touched_bytes: int


def view_store(
    store: CacheStore, block_sizes: Sequence[int], n_tokens: int, states: tuple[str, ...], chat_bytes: int
) -> StoreView:
    """`block_sizes`: bytes of a block of every pool."""
    coded = store.pools[: len(store.groups)]
    total, free = sum(pool.n_blocks for pool in coded), sum(pool.n_free for pool in coded)
    touched = sum(pool.n_touched * size for pool, size in zip(store.pools, block_sizes, strict=True))
    return StoreView(
        n_tokens=n_tokens,
        states=states,
        used_blocks=total - free,
        total_blocks=total,
        tree_tokens=store.tree.n_tokens,
        chat_bytes=chat_bytes,
        used_bytes=used_bytes(store, block_sizes),
        touched_bytes=touched,
    )


def used_bytes(store: CacheStore, block_sizes: Sequence[int]) -> int:
    """Bytes of all blocks in use."""
    return sum((p.n_blocks - p.n_free) * size for p, size in zip(store.pools, block_sizes, strict=True))


def cache_bytes(store: CacheStore, sequence: GenerationState, block_sizes: Sequence[int]) -> int:
    """Bytes of all blocks with computed tokens of a sequence: those that `block_states` tells of, and states."""
    tables = [] if sequence.cache is None else sequence.cache.tables
    end = -(-sequence.n_computed // store.block_tokens)
    return sum(len(table.held(end)) * size for table, size in zip(tables, block_sizes, strict=False))


def block_states(store: CacheStore, sequence: GenerationState, restored: Container[Node] = ()) -> tuple[str, ...]:
    """One letter for each block of a sequence that still holds them, by group; `restored` nodes came from the disk."""
    cache = sequence.cache
    if cache is None:
        return ("",) * len(store.groups)
    blocks = range(-(-sequence.n_computed // store.block_tokens))
    states = []
    for group, table in zip(store.groups, cache.tables, strict=False):
        n_known = cache.reuse.start if group.replayable else cache.reuse.n_tokens
        from_disk = {block for block, node in enumerate(cache.path) if node in restored}
        reused = [
            "c" if (block + 1) * store.block_tokens > n_known else "d" if block in from_disk else "r"
            for block in blocks
        ]
        states.append(
            "".join("w" if table.at(b) == NO_BLOCK else state for b, state in zip(blocks, reused, strict=True))
        )
    return tuple(states)
