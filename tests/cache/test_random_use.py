"""Random use of the cache never changes what is computed, and the same tests fail when a guard is taken away."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from localrun_testing import integer_model
from localrun_testing.cache_machine import Caches
from localrun_testing.integer_model import FULL, IntegerModel, serve, text, windowed

from localrun.cache.blocks import NO_BLOCK, BlockTable
from localrun.cache.kinds.interface import HeldBlocks, Reuse
from localrun.cache.kinds.recurrent import StateBlocks, StateTable
from localrun.cache.kinds.ring_blocks import RingBlocks
from localrun.cache.kinds.token_blocks import TokenBlocks
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree
from localrun.cache.reuse import ReusePlanner
from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import CacheStore
from localrun.engine.runner import cache_input
from localrun.ops.kv import BLOCK_TOKENS

Patch = pytest.MonkeyPatch
QUICK = settings(stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def test_cached_equals_computed() -> None:
    run_state_machine_as_test(Caches, settings=settings(QUICK, max_examples=30))


@pytest.mark.slow
def test_cached_equals_computed_for_long() -> None:
    run_state_machine_as_test(Caches, settings=settings(QUICK, max_examples=200, stateful_step_count=40))


def write_while_replaying(patch: Patch) -> None:
    patch.setattr(integer_model, "cache_input", lambda *a: replace(cache_input(*a), write_from=()))


def replay_one_layer_less(patch: Patch) -> None:
    original = ReusePlanner.replay_start

    def shorter(self: ReusePlanner, n_tokens: int) -> int:
        last = self.groups[self.layer_groups[-1]].window or 1
        return original(self, n_tokens) + (last - 1 + 63) // BLOCK_TOKENS * BLOCK_TOKENS

    patch.setattr(ReusePlanner, "replay_start", shorter)


def replay_from_inside_a_block(patch: Patch) -> None:
    def unaligned(self: ReusePlanner, n_tokens: int) -> int:
        lost = sum((self.groups[g].window or 1) - 1 for g in self.layer_groups if self.groups[g].replayable)
        windows = [rules.reads(n_tokens).start * BLOCK_TOKENS for rules in self.rules if rules.keeps_tails]
        return min([n_tokens - lost, *windows]) // BLOCK_TOKENS * BLOCK_TOKENS

    patch.setattr(ReusePlanner, "replay_start", unaligned)


def publish_what_replay_did_not_settle(patch: Patch) -> None:
    original = CacheStore._put

    def put(self: CacheStore, cache: SequenceCache, *arguments: Any, **options: Any) -> Node:
        reuse = cache.reuse
        cache.reuse = Reuse(reuse.start, reuse.start)
        try:
            return original(self, cache, *arguments, **options)
        finally:
            cache.reuse = reuse

    patch.setattr(CacheStore, "_put", put)


def share_instead_of_copying(patch: Patch) -> None:
    patch.setattr(CacheStore, "_writable", lambda self, pool, block, own=None: self.pools[pool].share(block))


def go_on_in_a_block_that_the_tree_has(patch: Patch) -> None:
    original = CacheStore._writable

    def writable(self: CacheStore, pool: int, block: int, own: BlockTable | None = None) -> int:
        return self.pools[pool].share(block) if own else original(self, pool, block, own)

    patch.setattr(CacheStore, "_writable", writable)


def truncate_the_tables_alone(patch: Patch) -> None:
    """The next blocks would be published behind nodes of another text."""
    original = CacheStore.truncate

    def truncate(self: CacheStore, cache: SequenceCache, n_tokens: int) -> int:
        path, n_published = cache.path, cache.n_published
        start = original(self, cache, n_tokens)
        cache.path, cache.n_published = path, n_published
        return start

    patch.setattr(CacheStore, "truncate", truncate)


def believe_the_first_ids(patch: Patch) -> None:
    original = PrefixTree.match

    def match(self: PrefixTree, token_ids: list[int]) -> Any:
        found = original(self, token_ids)
        children = found.path[-1].children if found.path else self.root.children
        n_left = len(token_ids) - len(found.path) * BLOCK_TOKENS
        alike = [node for node in children.values() if node is found.tail and len(node.ids) <= n_left]
        return replace(found, n_tail=len(alike[0].ids)) if alike else found

    patch.setattr(PrefixTree, "match", match)


def nobody_pins(patch: Patch) -> None:
    patch.setattr(PrefixTree, "pin", lambda self, node: None)
    patch.setattr(PrefixTree, "unpin", lambda self, node: None)


def drop_a_block_too_early(patch: Patch) -> None:
    original = TokenBlocks.first_block
    patch.setattr(TokenBlocks, "first_block", lambda self, p: original(self, p + (BLOCK_TOKENS if self.window else 0)))


def forget_block_0(patch: Patch) -> None:
    original = BlockTable.drop_below
    patch.setattr(BlockTable, "drop_below", lambda self, logical, keep_sink: original(self, logical, keep_sink=False))


def leak_a_sink(patch: Patch) -> None:
    patch.setattr(BlockTable, "drop_sink", lambda self: setattr(self, "sink", -1))


def reuse_the_last_token(patch: Patch) -> None:
    original = ReusePlanner.plan
    patch.setattr(ReusePlanner, "plan", lambda self, match, held, n: original(self, match, held, n + 1))


def trust_codes_of_an_open_block(patch: Patch) -> None:
    """Go on inside a block whose 16-bit form is gone."""
    patch.setattr(RingBlocks, "reusable", lambda self, held, n_tokens: n_tokens)


def go_on_from_a_state_of_more_tokens(patch: Patch) -> None:
    def reusable(self: StateBlocks, held: HeldBlocks, n_tokens: int) -> int:
        known = n_tokens and held.blocks[(n_tokens - 1) // self.block_tokens][self.pool] != NO_BLOCK
        return n_tokens if known else 0

    patch.setattr(StateBlocks, "reusable", reusable)


def keep_the_state_of_tokens_taken_back(patch: Patch) -> None:
    """A step was accepted in part; the state at its end is of all of it."""

    def retire(self: StateBlocks, table: StateTable, n_computed: int) -> int:
        if table.blocks:
            table.change_to(table.blocks[-1], n_computed)
            table.drop_written()
        return n_computed

    patch.setattr(StateBlocks, "retire", retire)


MUTANTS: dict[Callable[[Patch], None], str] = {  # and a model whose numbers then are wrong
    write_while_replaying: "alternating q8",
    replay_one_layer_less: "two windows",
    replay_from_inside_a_block: "alternating q8",
    share_instead_of_copying: "full",
    go_on_in_a_block_that_the_tree_has: "full",
    truncate_the_tables_alone: "full",
    believe_the_first_ids: "full",
    nobody_pins: "full",
    drop_a_block_too_early: "one window",
    forget_block_0: "user's window",
    leak_a_sink: "user's window",
    reuse_the_last_token: "full",
    trust_codes_of_an_open_block: "full q8",
    go_on_from_a_state_of_more_tokens: "recurrent",
    keep_the_state_of_tokens_taken_back: "recurrent",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_without_a_guard_the_random_tests_fail(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    monkeypatch.setattr(Caches, "names", (MUTANTS[mutant],))
    found = settings(QUICK, max_examples=300, phases=(Phase.generate,), derandomize=True)
    with pytest.raises((AssertionError, IndexError, KeyError, ExceptionGroup)):
        run_state_machine_as_test(Caches, settings=found)


def replay_and_leave() -> None:
    """A window is replayed, and then texts part from what was computed again on the way."""
    model = IntegerModel([FULL, windowed(70), FULL, windowed(70)], ["f16"] * 4, n_blocks=60, window_blocks=8)
    ids = text(800)
    serve(model, ids, 800)
    serve(model, text(900, 1))
    assert serve(model, ids).n_replayed > 128
    for n_same in range(790, 590, -40):
        serve(model, ids[:n_same] + text(9, n_same))


def test_unfinished_replays_are_not_shared(monkeypatch: Patch) -> None:
    replay_and_leave()
    publish_what_replay_did_not_settle(monkeypatch)
    with pytest.raises(AssertionError):
        replay_and_leave()
