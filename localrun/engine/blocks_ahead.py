"""Memory of the blocks that come next, had from the system while there is nothing to compute. Ints only, no tensors."""

from collections.abc import Callable

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.store import CacheStore


def touch_ahead(store: CacheStore, goes_on: Callable[[], bool]) -> None:
    """Have the next block of each pool there before a request needs it, while `goes_on` says so. The first use of
    memory takes the system several times as long as the copy of a chat's last block, which it is for; the plan of
    memory counts it. Nothing is had before the first request: an engine may be loaded for one short answer."""
    for number, pool in enumerate(store.pools):
        if pool.n_touched and goes_on() and (block := pool.touch_next()) != NO_BLOCK:
            store.copy(number, block - 1, block)
