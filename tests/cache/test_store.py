"""The cache by example: what is kept, what goes first, what is copied, and what a user is told."""

import sys
import tracemalloc
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.integer_model import FULL, IntegerModel, serve, sinking, text, windowed

from localrun.cache.blocks import NO_BLOCK, OutOfBlocks
from localrun.cache.node import Node
from localrun.cache.reuse import ReusePlanner
from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import CacheStore


def f16(*layers: object, n_blocks: int = 40, window_blocks: int = 40) -> IntegerModel:
    return IntegerModel(layers, ["f16"] * len(layers), n_blocks, window_blocks)  # type: ignore[arg-type]


def q8(n_blocks: int = 40, ring_blocks: int = 12) -> IntegerModel:
    return IntegerModel([FULL, FULL], ["q8", "q8"], n_blocks, ring_blocks=ring_blocks)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), min_size=1, max_size=4), min_size=1, max_size=12
    )
)
def test_with_room_for_all_a_hit_is_the_longest_prefix_ever_computed(texts: list[list[tuple[int, int]]]) -> None:
    store = f16(FULL, n_blocks=200).store
    seen: list[list[int]] = []
    for runs in texts:
        ids = [token for token, n in runs for _ in range(n)]
        longest = max((sum(1 for _ in same_start(ids, old)) for old in seen), default=0)
        cache = store.open(ids)
        assert cache.n_cached == min(longest, len(ids) - 1)
        store.extend(cache, cache.n_cached, len(ids))
        store.close(cache, ids)
        seen.append(ids)


def same_start(a: list[int], b: list[int]) -> list[int]:
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:n]


def test_a_second_request_reuses_the_running_first() -> None:
    model = f16(FULL, windowed(70))
    ids = text(300)
    first = model.store.open(ids)
    model.store.extend(first, 0, 256)
    model.step(first, ids, 0, 256)
    model.store.commit(first, ids, 256)
    assert serve(model_with(model, first), ids + text(10, 1)).n_cached == 256
    model.store.close(first, ids[:256])


def model_with(model: IntegerModel, cache: SequenceCache) -> IntegerModel:
    """The model, whose books count a sequence that is still running."""
    check = model.check_books
    model.check_books = lambda caches: check([*caches, cache])  # type: ignore[method-assign]
    return model


def test_regenerating_an_earlier_answer_computes_one_token() -> None:
    model = q8()
    ids = text(330)
    serve(model, ids[:200], 150)
    serve(model, ids, 230)
    assert serve(model, ids[:230]).n_cached == 229
    assert serve(model, ids[:150]).n_cached == 149


@pytest.mark.parametrize("n_prompt", [130, 129, 128, 191, 192, 193])
def test_regenerating_computes_one_token(n_prompt: int) -> None:
    model = q8()
    ids = text(n_prompt + 150)
    serve(model, ids, n_prompt, chunk=1)
    cache = serve(model, ids[:n_prompt])
    assert (cache.n_cached, cache.reuse.note) == (n_prompt - 1, "")


def test_the_next_turn_goes_on_inside_a_block() -> None:
    model = q8()
    ids = text(200)
    serve(model, ids[:170], 90)
    assert serve(model, ids).n_cached == 170


def test_without_its_16_bit_block_reuse_is_cut_to_whole_blocks() -> None:
    model = q8()
    ids = text(330)
    serve(model, ids, 300)
    cache = serve(model, ids[:150] + text(20, 1))
    assert cache.n_cached == 128
    assert cache.reuse.difference == "differs at token 150 from what was kept"
    assert cache.reuse.note == "its 16-bit block is gone: cut to whole blocks"


def test_few_16_bit_blocks_are_enough_and_block_0_stays() -> None:
    model = q8(ring_blocks=7)
    chats = [text(200, seed) for seed in range(3)]
    for ids in chats:
        serve(model, ids, 100)
    assert [serve(model, [*ids, 7]).n_cached >= 192 for ids in chats] == [True] * 3


def test_the_least_recently_used_text_goes_first_from_its_end() -> None:
    model = f16(FULL, n_blocks=10)
    old, young = text(256, 1), text(256, 2)
    serve(model, old)
    serve(model, young)
    serve(model, [*old, 5])
    serve(model, text(128, 3))
    assert serve(model, old).n_cached == 255
    cache = model.store.open(young)
    assert cache.n_cached < 256
    assert cache.reuse.note == f"evicted from memory from token {cache.n_cached} on"
    model.store.close(cache, young[: cache.n_cached])


def test_blocks_of_a_running_sequence_are_not_evicted() -> None:
    model = f16(FULL, n_blocks=6)
    ids = text(257)
    serve(model, ids)
    cache = model.store.open(ids)
    with pytest.raises(OutOfBlocks):
        model.store.extend(model.store.open(text(200, 1)), 0, 200)
    assert [node.ids for node in cache.path] == [tuple(ids[i : i + 64]) for i in range(0, 256, 64)]


def test_a_lease_that_finds_no_room_for_its_copy_holds_nothing() -> None:
    model = f16(FULL, n_blocks=4)
    serve(model, text(150))
    holder = model.store.open([*text(150), 1])
    model.check_books([holder])
    with pytest.raises(OutOfBlocks):
        model.store.open([*text(150), 2])
    model.check_books([holder])


@pytest.mark.parametrize("answer", [10, 900])
def test_windows_at_the_end_of_prompts_outlast_the_answer(answer: int) -> None:
    model = f16(FULL, windowed(70), FULL, windowed(70), window_blocks=8)
    ids = text(400 + answer)
    serve(model, ids, 400)
    cache = serve(model, ids[:400])
    assert (cache.n_cached, cache.n_replayed) == (399, 0)


def test_blocks_that_left_the_window_are_free_for_others() -> None:
    model = f16(FULL, windowed(70), window_blocks=4)
    serve(model, text(1500))
    model.store.tree.clear()


def test_a_lost_window_is_replayed_not_recomputed() -> None:
    model = f16(FULL, windowed(70), FULL, windowed(70), window_blocks=4, n_blocks=60)
    ids = text(1000)
    serve(model, ids, 1000)
    serve(model, text(900, 1))
    cache = serve(model, ids)
    assert cache.n_cached == (999 // 64 * 64 - 64 - 69) // 64 * 64
    assert cache.n_replayed == 999 - cache.n_cached
    assert cache.reuse.note == f"the sliding window had moved on: replayed {cache.n_replayed} tokens"
    assert serve(model, ids).n_replayed == 0, "what was replayed is kept"


def test_a_replay_that_would_begin_before_the_text_is_no_hit() -> None:
    model = f16(FULL, windowed(200), FULL, windowed(200), window_blocks=7)
    ids = text(300)
    serve(model, ids)
    serve(model, text(900, 1))
    cache = serve(model, ids)
    assert (cache.n_cached, cache.n_replayed) == (0, 0)
    assert "the sliding window had moved on: cut to 0 tokens" in cache.reuse.note


def test_the_end_of_the_replay_rule_by_hand() -> None:
    """From the last layer to the first: window 20, full, window 20, full with codes."""
    layers = [FULL, windowed(20), FULL, windowed(20)]
    groups = IntegerModel(layers, ["q8", "f16", "q8", "f16"], 10).groups
    start = min(500 - 19, 448)  # the last layer, and the whole of the oldest block in its window
    start -= start % 64  # codes: from the beginning of the block
    start -= 19
    assert ReusePlanner(groups).replay_start(500) == start // 64 * 64 == 384


def test_a_rolling_text_needs_no_more_than_window_and_first_block() -> None:
    window = 192
    model = f16(sinking(window), sinking(window), n_blocks=window // 64 + 2 + 1)
    ids = text(2000)
    serve(model, ids, chunk=64)
    cache = serve(model, [*ids, 1, 2, 3])
    assert cache.n_cached == 2000


def test_a_failed_sequence_leaves_nothing_it_put_there() -> None:
    model = f16(FULL)
    serve(model, text(128))
    ids = text(128) + text(300, 1)
    cache = model.store.open(ids)
    model.store.extend(cache, 128, 400)
    model.store.commit(cache, ids, 400)
    model.store.abandon(cache)
    model.check_books([])
    cache = model.store.open(ids)
    assert cache.n_cached == 128
    model.store.close(cache, ids[:128])


def test_without_the_prefix_cache_nothing_is_kept() -> None:
    model = IntegerModel([FULL], ["f16"], 4, keep_prefixes=False)
    for _ in range(2):
        assert serve(model, text(200)).n_cached == 0
        assert all(pool.n_free == pool.n_blocks for pool in model.store.pools)


def test_private_sequences_leave_nothing_behind() -> None:
    store = q8().store
    cache = store.open_private()
    store.skip(cache, 300)
    store.extend(cache, 300, 420)
    store.commit(cache, (), 420)
    store.close(cache, ())
    assert store.tree.n_tokens == 0
    assert all(pool.n_free == pool.n_blocks for pool in store.pools)


def test_a_step_does_no_work_that_grows_with_the_text() -> None:
    """As many calls with 2000 blocks as with 16, of Python's functions and of those in C, and no copy of a table."""

    def work_of_a_block(n_tokens: int) -> tuple[int, bool]:
        store = CacheStore(q8().groups, [n_tokens // 64 + 10], [12])
        ids = list(range(n_tokens + 64))
        cache = store.open(ids)
        for stop in range(512, n_tokens + 1, 512):
            store.extend(cache, stop - 512, stop)
            store.commit(cache, ids, stop)
        calls: list[str] = []
        sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
        for position in range(n_tokens, n_tokens + 63):
            store.extend(cache, position, position + 1)
            store.commit(cache, ids, position + 1)
        sys.setprofile(None)
        tracemalloc.start()
        store.extend(cache, n_tokens + 63, n_tokens + 64)
        now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return len(calls), most - now > 4096

    assert work_of_a_block(512 * 250) == work_of_a_block(512 * 2) == (work_of_a_block(512 * 4)[0], False)


def test_a_block_from_elsewhere_is_found_like_any_other() -> None:
    model = IntegerModel([FULL, windowed(70), FULL], ["q8", "f16", "q8"], 20)
    ids = text(200)
    serve(model, ids)
    path = model.store.tree.match(ids).path
    saved = [[contents(model, pool, block) for pool, block in enumerate(node.blocks)] for node in path]
    model.store.tree.clear()
    model.poison()
    parent: Node | None = None
    for index, parts in enumerate(saved):
        fill = [None if part is None else partial(put_back, model, pool, part) for pool, part in enumerate(parts)]
        parent = model.store.insert(parent, ids[64 * index : 64 * index + 64], fill)
        model.check_books([])
    cache = serve(model, ids)
    assert cache.n_cached == 192


def contents(model: IntegerModel, pool: int, block: int) -> dict[int, list[int]] | None:
    if block == NO_BLOCK:
        return None
    return {layer: list(model.memory[pool, block, layer]) for layer in model.store.group_of[pool].layers}


def put_back(model: IntegerModel, pool: int, content: dict[int, list[int]], block: int) -> None:
    for layer, values in content.items():
        model.memory[pool, block, layer] = values


def test_a_block_from_elsewhere_that_finds_no_room_leaves_no_trace() -> None:
    model = IntegerModel([FULL, windowed(70)], ["f16", "f16"], 20, window_blocks=1)
    holder = model.store.open(text(10))
    model.store.extend(holder, 0, 10)
    written: list[int] = []
    with pytest.raises(OutOfBlocks):
        model.store.insert(None, text(64, 1), [written.append, written.append])
    assert len(written) == 1
    model.check_books([holder])
    assert model.store.tree.n_tokens == 0
