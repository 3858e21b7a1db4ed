"""A model made of integers, to be computed on a CacheStore as an executor would and, beside it, densely.

What a layer keeps of a token is a number that depends on everything the token read, and on whether it read codes or
16-bit values. One value read from the wrong block, in the wrong form, before it was written or after it was reused
makes all later numbers differ.
"""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localrun.cache.blocks import NO_BLOCK
from localrun.cache.disk import DiskTier
from localrun.cache.groups import BLOCK_TOKENS, Group, ring_pools
from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import CacheStore
from localrun.engine.disk_cache import DiskCache
from localrun.engine.runner import cache_input
from localrun.fit.groups import group_layers
from localrun.model.config import LayerSpec
from localrun.ops.interface import SequenceInput
from localrun.ops.kv import KV_CODECS

PRIME = (1 << 61) - 1
F16, Q8 = KV_CODECS["f16"], KV_CODECS["q8"]
FULL = LayerSpec("full", None, 0, n_heads=1, n_kv_heads=1, head_dim=8, ffn_size=8)


def windowed(window: int) -> LayerSpec:
    return LayerSpec("window", window, 0, n_heads=1, n_kv_heads=1, head_dim=8, ffn_size=8)


def sinking(window: int) -> LayerSpec:
    """A full layer under a user's window."""
    return LayerSpec("full", None, 0, n_heads=1, n_kv_heads=1, head_dim=8, ffn_size=8, sink_window=window)


def mix(*values: int) -> int:
    return hash(values) % PRIME


@dataclass(eq=False)
class PaperModel:
    """`layers` with the codec of each, its block memory, and a store over it."""

    layers: Sequence[LayerSpec]
    codecs: Sequence[str]
    n_blocks: int
    window_blocks: int = 12  # of groups with a window of their own
    ring_blocks: int = 12
    keep_prefixes: bool = True
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = group_layers(self.layers, [KV_CODECS[name] for name in self.codecs])
        self.rings = ring_pools(self.groups)
        counts = [self.window_blocks if group.replayable else self.n_blocks for group in self.groups]
        rings = [self.ring_blocks] * len(self.groups)
        self.store = CacheStore(self.groups, counts, rings, self.copy, self.keep_prefixes)
        self.noise = random.Random(0)
        self.memory: dict[tuple[int, int, int], list[int]] = {}  # (pool, block, layer) -> one number a slot
        self.place = {layer: g for g, group in enumerate(self.groups) for layer in group.layers}
        self.known: dict[tuple[int, ...], list[int]] = {}
        self.poison()

    def copy(self, pool: int, source: int, target: int) -> None:
        for layer in self.store.group_of[pool].layers:
            self.memory[pool, target, layer] = list(self.memory[pool, source, layer])

    def poison(self) -> None:
        """Fill every free block with noise."""
        for pool, blocks in enumerate(self.store.pools):
            for block, references in enumerate(blocks.references):
                for layer in self.store.group_of[pool].layers if references == 0 else ():
                    self.memory[pool, block, layer] = [self.noise.getrandbits(60) for _ in range(BLOCK_TOKENS)]

    def step(self, cache: SequenceCache, ids: Sequence[int], start: int, n: int) -> list[int]:
        """Compute tokens start … start+n-1 of `ids` where the cache has room for them -> one number a token."""
        view = cache_input(self.groups, cache, start, n)
        state = [mix(ids[p], p) for p in range(start, start + n)]
        for layer in range(len(self.layers)):
            for offset, value in enumerate(state):
                self.append(view, layer, start + offset, mix(value, layer))
            state = [mix(value, self.attend(view, layer, start + offset)) for offset, value in enumerate(state)]
        return state

    def append(self, view: SequenceInput, layer: int, position: int, value: int) -> None:
        g, (block, slot) = self.place[layer], divmod(position, BLOCK_TOKENS)
        ring = self.rings[g]
        if not view.write_from or position >= view.write_from[g]:
            self.write(g, view.table[g][block - view.first[g]], layer, slot, mix(value, 8) if ring else value)
        if ring is not None:
            self.write(ring, view.ring[g][block - view.ring_first], layer, slot, value)

    def write(self, pool: int, block: int, layer: int, slot: int, value: int) -> None:
        assert self.store.pools[pool].references[block] == 1, "wrote to a block that others read"
        self.memory[pool, block, layer][slot] = value

    def attend(self, view: SequenceInput, layer: int, position: int) -> int:
        g = self.place[layer]
        group, ring = self.groups[g], self.rings[g]
        own, total = position // BLOCK_TOKENS, 0
        for block, low, high in visible(group, position):
            if ring is not None and block in (0, own):
                inside = 0 <= block - view.ring_first < len(view.ring[g])
                found = view.ring[g][block - view.ring_first] if inside else view.ring_sink[g]
                total += self.read(ring, found, layer, low, high)
            elif block >= view.first[g]:
                total += self.read(g, view.table[g][block - view.first[g]], layer, low, high)
            elif block == 0 and group.sinks:
                total += self.read(g, view.sink[g], layer, low, high)
        return total % PRIME

    def read(self, pool: int, block: int, layer: int, low: int, high: int) -> int:
        assert block != NO_BLOCK, "a query reads a block that is not there"
        assert self.store.pools[pool].references[block] > 0, "a query reads a free block"
        return sum(self.memory[pool, block, layer][low:high])

    def truth(self, ids: Sequence[int]) -> list[int]:
        """The numbers of all tokens, with nothing but lists as long as the text."""
        key = tuple(ids)
        if key not in self.known:
            state = [mix(token, p) for p, token in enumerate(ids)]
            for layer in range(len(self.layers)):
                group = self.groups[self.place[layer]]
                exact = [mix(value, layer) for value in state]
                codes = exact if group.codec.native else [mix(value, 8) for value in exact]
                state = [mix(value, dense(group, p, exact, codes)) for p, value in enumerate(state)]
            self.known[key] = state
        return self.known[key]

    def check_books(self, caches: Sequence[SequenceCache]) -> None:
        """Every block is held as often as tree and sequences say; the orders of eviction list what the tree has."""
        tree = self.store.tree
        nodes = list(tree.nodes())
        for pool, blocks in enumerate(self.store.pools):
            held = [0] * blocks.n_blocks
            for cache in caches:
                table = cache.tables[pool]
                for block in (*table.blocks, *([] if table.sink == NO_BLOCK else [table.sink])):
                    held[block] += 1
            queue = tree.queues[pool]
            listed = [*queue.order, *queue.held]
            assert sorted(map(id, listed)) == sorted(id(node) for node in nodes if node.blocks[pool] != NO_BLOCK)
            assert {(node, tail) for node, tails in queue.held.items() for tail in tails} == {
                (node, tail) for tail in queue.tails for node in tail
            }
            for node in listed:
                held[node.blocks[pool]] += 1
            assert held == blocks.references, "a block leaked or is held twice"
            assert blocks.n_free == held.count(0)
        assert tree.n_tokens == sum(len(node.ids) for node in nodes)
        pins = [cache.path[-1] for cache in caches if cache.path]
        for node in nodes:
            assert node.pins == pins.count(node)
            assert len(node.ids) == BLOCK_TOKENS or not node.children
            assert node.parent is not None
            assert node.parent.children[node.ids] is node
            assert [child.ids for child in node.line] == sorted(node.children)


def visible(group: Group, position: int) -> list[tuple[int, int, int]]:
    """(logical block, first slot, slot after the last) of all that a query sees, in ascending order."""
    oldest = 0 if group.window is None else max(0, position - group.window + 1)
    spans = [] if not group.sinks or oldest < BLOCK_TOKENS else [(0, 0, BLOCK_TOKENS)]
    for block in range(oldest // BLOCK_TOKENS, position // BLOCK_TOKENS + 1):
        begin = block * BLOCK_TOKENS
        low = 0 if block == 0 and group.sinks else max(0, oldest - begin)
        spans.append((block, low, min(BLOCK_TOKENS, position + 1 - begin)))
    return spans


def dense(group: Group, position: int, exact: Sequence[int], codes: Sequence[int]) -> int:
    own, total = position // BLOCK_TOKENS, 0
    for block, low, high in visible(group, position):
        source = exact if block in (0, own) else codes
        total += sum(source[block * BLOCK_TOKENS + low : block * BLOCK_TOKENS + high])
    return total % PRIME


def text(n_tokens: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(1000), k=n_tokens)


def disk_cache(model: PaperModel, root: Path, budget: int = 1 << 30) -> DiskCache:
    """Blocks of the model's memory on disk."""
    sizes = [8 * BLOCK_TOKENS * len(group.layers) for group in model.store.group_of]

    def read(pool: int, block: int) -> bytes:
        layers = model.store.group_of[pool].layers
        return b"".join(struct.pack(f"<{BLOCK_TOKENS}Q", *model.memory[pool, block, layer]) for layer in layers)

    def write(pool: int, block: int, data: memoryview) -> None:
        for n, layer in enumerate(model.store.group_of[pool].layers):
            own = struct.unpack_from(f"<{BLOCK_TOKENS}Q", data, 8 * BLOCK_TOKENS * n)
            model.memory[pool, block, layer] = list(own)

    return DiskCache(model.store, DiskTier(root, "paper", sizes), read, write, budget)


def serve(
    model: PaperModel,
    ids: list[int],
    n_prompt: int | None = None,
    chunk: int = 64,
    chat: str = "",
    disk: DiskCache | None = None,
) -> SequenceCache:
    """One sequence from beginning to end, checked token by token; the cache is closed."""
    store = model.store
    if disk is not None:
        disk.restore(ids)
    cache = store.open(ids, n_prompt, chat)
    done = cache.reuse.start
    while done < len(ids):
        n = min(chunk, len(ids) - done)
        store.extend(cache, done, done + n)
        exact = max(0, cache.reuse.n_tokens - done)
        assert model.step(cache, ids, done, n)[exact:] == model.truth(ids)[done : done + n][exact:]
        done += n
        store.commit(cache, ids, done)
    store.close(cache, ids)
    model.check_books([])
    model.poison()
    return cache
