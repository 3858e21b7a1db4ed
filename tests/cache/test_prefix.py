"""The prefix tree and the leases on it, against brute force over random sequences of operations."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.cache.blocks import BlockPool, OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS, Group
from localrun.cache.prefix import PrefixTree, common_prefix
from localrun.cache.store import CacheStore, Lease

GROUPS = (Group((0, 1), None, 2, 16), Group((2,), 16, 2, 16))
# few ids and long runs, so that random texts share long prefixes and part inside blocks
TEXTS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), min_size=1, max_size=4).map(
    lambda runs: [token for token, length in runs for _ in range(length)]
)


class Shadow:
    """What each block should hold, written the way a runner writes keys and values: by position."""

    def __init__(self, store: CacheStore) -> None:
        self.store = store
        self.content: dict[tuple[int, int], list[int]] = {}  # (group, block) -> ids by slot

    def carry_out_copies(self, lease: Lease) -> None:
        for group, source, target in lease.copies:
            self.content[group, target] = list(self.content.get((group, source), []))
        lease.copies.clear()

    def write(self, lease: Lease, ids: Sequence[int], start: int) -> None:
        for position in range(start, len(ids)):
            for group, block in enumerate(lease.blocks[position // BLOCK_TOKENS]):
                assert self.store.pools[group].references[block] == 1, "wrote to a block that others read"
                slots = self.content.setdefault((group, block), [])
                del slots[position % BLOCK_TOKENS :]
                slots.append(ids[position])

    def read(self, lease: Lease, n_tokens: int, group: int) -> list[int]:
        held = [token for blocks in lease.blocks for token in self.content.get((group, blocks[group]), [])]
        return held[:n_tokens]


def run_text(store: CacheStore, shadow: Shadow, ids: Sequence[int]) -> int:
    """Open, compute and close one sequence as the engine does; what was reused of it."""
    lease = store.open(ids)
    shadow.carry_out_copies(lease)
    for group in range(len(GROUPS)):
        assert shadow.read(lease, lease.n_cached, group) == list(ids[: lease.n_cached])
    store.extend(lease, len(ids))
    n_cached = lease.n_cached
    shadow.write(lease, ids, n_cached)
    store.close(lease, ids)
    return n_cached


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_a_hit_is_the_longest_prefix_ever_computed_and_holds_its_tokens(texts: list[list[int]]) -> None:
    store = CacheStore(GROUPS, n_blocks=200)
    shadow = Shadow(store)
    seen: list[list[int]] = []
    for ids in texts:
        expected = max((common_prefix(ids, old) for old in seen), default=0)
        assert run_text(store, shadow, ids) == min(expected, len(ids) - 1)
        seen.append(ids)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12), st.integers(8, 14))
def test_a_small_pool_evicts_and_never_hands_out_a_wrong_prefix(texts: list[list[int]], n_blocks: int) -> None:
    store = CacheStore(GROUPS, n_blocks=n_blocks)
    shadow = Shadow(store)
    for ids in texts:
        run_text(store, shadow, ids)
        for pool in store.pools:
            held = sum(1 for count in pool.references if count)
            assert held == sum(1 for _ in store.tree.nodes()) == pool.n_blocks - pool.n_free
            assert all(count in (0, 1) for count in pool.references)
    store.tree.clear()
    assert all(pool.n_free == n_blocks for pool in store.pools)


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS, min_size=2, max_size=6))
def test_sequences_that_run_side_by_side_never_write_to_a_shared_block(texts: list[list[int]]) -> None:
    store = CacheStore(GROUPS, n_blocks=200)
    shadow = Shadow(store)
    run_text(store, shadow, texts[0])
    leases = [store.open(ids) for ids in texts]
    for lease, ids in zip(leases, texts, strict=True):
        shadow.carry_out_copies(lease)
        store.extend(lease, len(ids))
        shadow.write(lease, ids, lease.n_cached)
    for lease, ids in zip(leases, texts, strict=True):
        assert shadow.read(lease, len(ids), 0) == list(ids)
        store.close(lease, ids)


def test_the_least_recently_used_leaf_goes_first() -> None:
    pool = BlockPool(8)
    tree = PrefixTree([pool])
    for start in (0, 100, 200):
        block = pool.allocate()
        tree.insert(range(start, start + 10), [(block,)])
        pool.release(block)
    tree.match(range(10))  # touch the oldest
    assert tree.evict_one()
    assert tree.match(range(100, 110)).n_tokens == 0
    assert tree.match(range(10)).n_tokens == 10


def test_without_the_prefix_cache_nothing_is_kept() -> None:
    store = CacheStore(GROUPS, n_blocks=4, keep_prefixes=False)
    shadow = Shadow(store)
    assert run_text(store, shadow, [1] * 100) == run_text(store, shadow, [1] * 100) == 0
    assert all(pool.n_free == 4 for pool in store.pools)


def test_a_failed_lease_holds_nothing() -> None:
    store = CacheStore(GROUPS, n_blocks=1)
    shadow = Shadow(store)
    run_text(store, shadow, [1] * 40)
    holder = store.open([2] * 10)
    try:
        store.extend(holder, 10)  # takes the only block, the tree has to give it up
        store.open([2] * 10)
        store.extend(store.open([3] * 10), 10)
    except OutOfBlocks:
        pass
    else:
        raise AssertionError("one block cannot serve two sequences")
    store.close(holder, [2] * 10)
    assert all(sum(pool.references) == 1 for pool in store.pools)
