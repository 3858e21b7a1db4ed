"""Memory of the next block is had while there is nothing to compute."""

from localrun_testing.small_model import finish, greedy, small_engine, text
from localrun_testing.waiting import until

from localrun.cache.groups import Group
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.store import CacheStore
from localrun.engine.blocks_ahead import touch_ahead


def test_the_copy_of_a_chats_last_block_goes_where_memory_is_there_already() -> None:
    engine = small_engine()
    store, copies = engine.store, list[tuple[int, int, int]]()
    copy_block = store.copy

    def copy(pool: int, source: int, target: int) -> None:
        copies.append((pool, target, store.pools[pool].references[target]))
        copy_block(pool, source, target)

    store.copy = copy
    try:
        until(engine.resting.is_set)
        assert not copies, "nothing before the first request"
        first = finish(engine.submit(greedy(text(100))))
        until(lambda: len(copies) == len(store.pools))
        ahead = dict(enumerate(pool.n_touched - 1 for pool in store.pools))
        assert copies == [(pool, block, 0) for pool, block in ahead.items()], "of blocks that nothing holds"
        finish(engine.submit(greedy([*first.token_ids, *text(3)])))
        assert (0, ahead[0], 1) in copies[len(store.pools) :]
    finally:
        engine.close()


def test_memory_is_had_once_and_not_while_a_request_waits() -> None:
    copies = list[tuple[int, ...]]()
    store = CacheStore([Group((0,), AttentionCache(1, 8, 8))], [3], copy=lambda *blocks: copies.append(blocks))
    (pool,) = store.pools
    held = [pool.allocate()]
    touch_ahead(store, lambda: False)
    assert (copies, pool.n_touched) == ([], 1)
    for _ in range(2):
        touch_ahead(store, lambda: True)
    assert (copies, pool.n_touched) == ([(0, 0, 1)], 2)
    held += [pool.allocate(), pool.allocate()]
    assert held == [0, 1, 2]
    touch_ahead(store, lambda: True)
    assert len(copies) == 1, "no block is left"
    pool.release(held[1])
    touch_ahead(store, lambda: True)
    assert len(copies) == 1, "the next block has been used before"
