"""The bookkeeping costs what is new, however much is kept: operations are counted, not seconds."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.integer_model import text

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.eviction_queue import EvictionQueue
from localrun.cache.groups import Group
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.node import Node, common_prefix
from localrun.cache.store import CacheStore
from localrun.ops.kv import BLOCK_TOKENS

WINDOW = 512


def full(n_blocks: int) -> CacheStore:
    return CacheStore([Group((0,), AttentionCache(1, 8, 8))], [n_blocks])


def windowed(n_blocks: int, n_window: int) -> CacheStore:
    return CacheStore(
        [Group((0,), AttentionCache(1, 8, 8)), Group((1,), AttentionCache(1, 8, 8, WINDOW))], [n_blocks, n_window]
    )


def serve(store: CacheStore, ids: list[int]) -> None:
    cache = store.open(ids)
    for done in range(cache.reuse.start, len(ids), BLOCK_TOKENS):
        end = min(done + BLOCK_TOKENS, len(ids))
        store.extend(cache, done, end)
        store.commit(cache, ids, end)
    store.close(cache, ids)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a block was looked at to be evicted, and how often a tail was taken apart or put together."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            counts[name] += 1
            return function(*arguments)

        return call

    for name in ("_free", "_let_go", "use", "keep"):
        monkeypatch.setattr(EvictionQueue, name, counted(name, getattr(EvictionQueue, name)))
    return counts


def test_eviction_beside_a_held_chain_looks_at_each_of_its_blocks_once(looks: Counter[str]) -> None:
    store = full(1000)
    long = text(500 * BLOCK_TOKENS)
    serve(store, long)
    cache = store.open([*long, 1])
    for n in range(49):
        serve(store, text(10 * BLOCK_TOKENS, n + 1))
    looks.clear()
    evicted = 0
    for n in range(30):
        before = store.tree.n_tokens
        serve(store, text(10 * BLOCK_TOKENS, 100 + n))
        evicted += 10 - (store.tree.n_tokens - before) // BLOCK_TOKENS
    assert evicted >= 290
    assert looks["_free"] <= 500 + evicted + 30
    store.close(cache, long)


def test_a_thousand_windowed_chats_cost_one_more_what_a_few_do(looks: Counter[str]) -> None:
    costs = []
    for n_chats in (100, 1000):
        store = windowed(20 * n_chats, 4 * n_chats)  # windows go again and again, for want of room
        rng = random.Random(0)
        chats = [rng.choices(range(1000), k=900) for _ in range(n_chats)]
        for chat in chats:
            serve(store, chat)
        looks.clear()
        for chat in chats[-50:]:
            serve(store, [*chat, *rng.choices(range(1000), k=100)])
        costs.append(sum(looks.values()))
    assert costs[1] <= 1.2 * costs[0]


CHILDREN = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), max_size=12)


@settings(max_examples=300)
@given(CHILDREN, st.lists(st.integers(0, 2), max_size=6).map(tuple), st.integers(0, 12))
def test_the_nearest_child_is_the_one_that_looking_at_all_finds(
    texts: list[tuple[int, ...]], wanted: tuple[int, ...], n_removed: int
) -> None:
    node = Node((), 0, None, [])
    kept: list[Node] = []
    for n, ids in enumerate(texts):
        if not any(common_prefix(ids, child.ids) in (len(ids), len(child.ids)) for child in kept):
            kept.append(Node(ids, n, node, [n if n % 2 else NO_BLOCK, 1]))
            node.add(kept[-1])
    for child in kept[:n_removed]:
        node.remove(child)
    left = kept[n_removed:]
    most = max((common_prefix(child.ids, wanted) for child in left), default=0)
    n, found = node.nearest(wanted)
    assert n == most
    assert (found is None) == (most == 0)
    if found is not None:
        alike = [child for child in left if common_prefix(child.ids, wanted) == most]
        assert found in alike
        assert NO_BLOCK not in found.blocks or all(NO_BLOCK in child.blocks for child in alike)
    begins = [child for child in left if child.ids[: len(wanted)] == wanted]
    shorter = [child for child in left if wanted[: len(child.ids)] == child.ids]
    before, behind = node.neighbours(wanted)
    assert not shorter or before in shorter or behind in shorter
    assert not begins or behind in begins


def test_looking_for_a_child_among_a_thousand_compares_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node((), 0, None, [])
    system = text(40)
    for n in range(1000):
        node.add(Node((*system, *text(24, n)), n, node, [1]))
    compared = []

    def counted(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        compared.append(a)
        return common_prefix(a, b)

    monkeypatch.setattr("localrun.cache.node.common_prefix", counted)
    assert node.nearest((*system, 5000))[0] == 40
    assert len(compared) <= 2
