"""What drafts leave behind: the same blocks in the tree as without, byte for byte, and no block that is lost."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from localrun_testing.cache_engine import GEMMA, GRANITE_H, HYBRID, LLAMA, CacheCase
from localrun_testing.drafts import Guesses, speculate
from localrun_testing.small_model import finish, greedy, text

from localrun.backends.cpu.library import load_library
from localrun.cache.blocks import NO_BLOCK
from localrun.cache.node import Node
from localrun.engine.engine import Engine
from localrun.engine.handle import NewToken

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")

CASES = {
    "llama q8": CacheCase(LLAMA, "q8", "q8"),
    "llama q4": CacheCase(LLAMA, "q4", "q4"),
    "gemma f16": CacheCase(GEMMA),
    "gemma q8": CacheCase(GEMMA, "q8", "q8"),
    "hybrid": CacheCase(HYBRID),
    "granite-h": CacheCase(GRANITE_H),
    "sinks": CacheCase(LLAMA, user_window=128),
}


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = request.param.engine(native=True)
    yield opened
    opened.close()


def way_to(node: Node) -> tuple[int, ...]:
    """All tokens up to the end of a node."""
    return (*(() if node.parent is None else way_to(node.parent)), *node.ids)


def whole_blocks(engine: Engine) -> dict[tuple[int, tuple[int, ...]], bytes]:
    """The bytes of every whole block in the tree, by pool and text."""
    size = engine.store.block_tokens
    return {
        (pool, way_to(node)): engine.runner.read(pool, block)
        for node in engine.store.tree.nodes()
        for pool, block in enumerate(node.blocks)
        if block != NO_BLOCK and len(node.ids) == size
    }


@pytest.mark.parametrize("engine", CASES.values(), ids=CASES, indirect=True)
def test_blocks_in_the_tree_hold_what_they_do_without_drafts(engine: Engine) -> None:
    found = []
    requests = [greedy(text(100 + 9 * seed, seed), 150) for seed in range(2)]
    texts: list[list[int]] = []
    for right in (None, 0.7):
        speculate(engine, None if right is None else partial(Guesses, texts, right))
        engine.store.tree.clear()
        texts = [finish(engine.submit(request)).token_ids for request in requests]
        found.append(whole_blocks(engine))
    plain, drafted = found
    shared = plain.keys() & drafted.keys()
    assert len(shared) >= 0.7 * len(plain)
    assert all(plain[key] == drafted[key] for key in shared)


@pytest.mark.parametrize("engine", CASES.values(), ids=CASES, indirect=True)
def test_no_block_is_lost_however_drafts_and_answers_end(engine: Engine) -> None:
    """Answers side by side that are cancelled, limited, stopped, and gone on with, while many drafts are wrong."""
    dice, prompt = random.Random(1), text(60)
    speculate(engine, partial(Guesses, [], 0.0))
    for _ in range(40):
        n, stops = dice.randint(1, 40), frozenset(dice.sample(range(97), 3))
        request = greedy([*prompt, *text(dice.randint(1, 60), n)], n, stops)
        handles = [engine.submit(replace(request, seed=seed)) for seed in range(dice.randint(1, 3))]
        if dice.random() < 0.3:
            next((event for event in handles[0] if isinstance(event, NewToken)), None)
            handles[0].cancel()
            handles = handles[1:]
        for handle in handles:
            prompt = finish(handle).token_ids[:200]
    engine.close()
    assert not engine.scheduler.running
    assert not engine.scheduler.speculation.drafters  # type: ignore[union-attr]
    engine.store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in engine.store.pools)
