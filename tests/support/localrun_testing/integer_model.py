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
from localrun.cache.groups import Group, make_groups, ring_pools
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.kinds.compressed import Compressed
from localrun.cache.kinds.interface import CacheKind
from localrun.cache.kinds.latent import Latent
from localrun.cache.kinds.recurrent import Recurrent
from localrun.cache.sequence_cache import SequenceCache
from localrun.cache.store import CacheStore
from localrun.engine.runner import cache_input
from localrun.ops.interface import SequenceInput
from localrun.ops.kv import KV_CODECS
from localrun.storage.block_files import BlockFiles
from localrun.storage.disk_cache import DiskCache
from localrun.storage.label import Label

PRIME = (1 << 61) - 1
F16, Q8 = KV_CODECS["f16"], KV_CODECS["q8"]
FULL = AttentionCache(1, 8, 8)
RECURRENT, LATENT = Recurrent(8), Latent(8, 4)
CSA, HCA = Compressed(4, 8), Compressed(128, 8)


def windowed(window: int) -> AttentionCache:
    return AttentionCache(1, 8, 8, window)


def sinking(window: int) -> AttentionCache:
    """A full layer under a user's window."""
    return AttentionCache(1, 8, 8, window, sink=True)


def mix(*values: int) -> int:
    return hash(values) % PRIME


@dataclass(eq=False)
class IntegerModel:
    """`layers` with the codec of each, its block memory, and a store over it."""

    layers: Sequence[CacheKind]
    codecs: Sequence[str]
    n_blocks: int
    window_blocks: int = 12  # of groups with a window of their own
    ring_blocks: int = 12
    keep_prefixes: bool = True
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        wanted = [KV_CODECS[name] for name in self.codecs]
        codecs = [
            c if isinstance(kind, AttentionCache) else kind.codec(c)
            for kind, c in zip(self.layers, wanted, strict=True)
        ]
        self.groups = make_groups(self.layers, codecs)
        self.rings = ring_pools(self.groups)
        counts = [self.window_blocks if group.replayable else self.n_blocks for group in self.groups]
        rings = [self.ring_blocks] * len(self.groups)
        self.store = CacheStore(self.groups, counts, rings, self.copy, self.keep_prefixes)
        self.size = self.store.block_tokens
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
                    self.memory[pool, block, layer] = [self.noise.getrandbits(60) for _ in range(self.size)]

    def step(self, cache: SequenceCache, ids: Sequence[int], start: int, n: int) -> list[int]:
        """Compute tokens start … start+n-1 of `ids` where the cache has room for them -> one number a token."""
        view = cache_input(self.groups, cache, start, n)
        values = [mix(ids[p], p) for p in range(start, start + n)]
        for layer in range(len(self.layers)):
            if isinstance(self.layers[layer], Recurrent):
                values = self.recur(view, layer, start, values)
                continue
            for offset, value in enumerate(values):
                self.append(view, layer, start + offset, mix(value, layer))
            values = [mix(value, self.attend(view, layer, start + offset)) for offset, value in enumerate(values)]
        return values

    def recur(self, view: SequenceInput, layer: int, start: int, values: Sequence[int]) -> list[int]:
        """A state is the same number in every slot of its block."""
        g, found = self.place[layer], []
        assert (view.state[g] == NO_BLOCK) == (start == 0)
        state = self.read(g, view.state[g], layer, 0, 1) if start else 0
        for position, value in enumerate(values, start):
            state = mix(state, value, layer)
            found.append(mix(value, state))
            number, slot = divmod(position, self.size)
            if slot == self.size - 1 or position == view.length - 1:
                block = view.table[g][number - view.first[g]]
                if block != NO_BLOCK:
                    self.write(g, block, layer, slice(None), state)
        return found

    def append(self, view: SequenceInput, layer: int, position: int, value: int) -> None:
        g, (block, slot) = self.place[layer], divmod(position, self.size)
        ring, ratio = self.rings[g], self.layers[layer].entry_tokens
        if ring is not None:
            self.write(ring, view.ring[g][block - view.ring_first], layer, slice(slot, slot + 1), value)
        if view.write_from and position < view.write_from[g]:
            return
        coded, known = view.table[g][block - view.first[g]], value if ring is None else mix(value, 8)
        if ratio == 1:
            self.write(g, coded, layer, slice(slot, slot + 1), known)
        elif (slot + 1) % ratio == 0 and ring is not None:
            total = self.read(ring, view.ring[g][block - view.ring_first], layer, slot + 1 - ratio, slot + 1)
            self.write(g, coded, layer, slice(slot // ratio, slot // ratio + 1), mix(total % PRIME, 8))

    def write(self, pool: int, block: int, layer: int, slots: slice, value: int) -> None:
        assert self.store.pools[pool].references[block] == 1, "wrote to a block that others read"
        slots_of = self.memory[pool, block, layer]
        slots_of[slots] = [value] * len(slots_of[slots])

    def attend(self, view: SequenceInput, layer: int, position: int) -> int:
        g = self.place[layer]
        group, ring = self.groups[g], self.rings[g]
        if group.kind.entry_tokens > 1:
            return self.attend_entries(view, layer, position)
        own, total = position // self.size, 0
        for block, low, high in visible(group, position):
            if ring is not None and block in (0, own):
                inside = 0 <= block - view.ring_first < len(view.ring[g])
                found = view.ring[g][block - view.ring_first] if inside else view.ring_sink[g]
                total += self.read(ring, found, layer, low, high)
            elif block >= view.first[g]:
                total += self.read(g, view.table[g][block - view.first[g]], layer, low, high)
            elif block == 0 and group.sink:
                total += self.read(g, view.sink[g], layer, low, high)
        return total % PRIME

    def attend_entries(self, view: SequenceInput, layer: int, position: int) -> int:
        """All whole entries, and of the open one every token."""
        g, (own, slot) = self.place[layer], divmod(position, self.size)
        ring, ratio = self.rings[g], self.layers[layer].entry_tokens
        whole, total = (slot + 1) // ratio, 0
        for block in range(own + 1):
            n_entries = whole if block == own else self.size // ratio
            total += self.read(g, view.table[g][block], layer, 0, n_entries)
        assert ring is not None
        return (total + self.read(ring, view.ring[g][own - view.ring_first], layer, whole * ratio, slot + 1)) % PRIME

    def read(self, pool: int, block: int, layer: int, low: int, high: int) -> int:
        assert block != NO_BLOCK, "a query reads a block that is not there"
        assert self.store.pools[pool].references[block] > 0, "a query reads a free block"
        return sum(self.memory[pool, block, layer][low:high])

    def truth(self, ids: Sequence[int]) -> list[int]:
        """The numbers of all tokens, with nothing but lists as long as the text."""
        key = tuple(ids)
        if key not in self.known:
            values = [mix(token, p) for p, token in enumerate(ids)]
            for layer in range(len(self.layers)):
                values = self.true_layer(layer, values)
            self.known[key] = values
        return self.known[key]

    def true_layer(self, layer: int, values: Sequence[int]) -> list[int]:
        group, ratio = self.groups[self.place[layer]], self.layers[layer].entry_tokens
        if isinstance(group.kind, Recurrent):
            states = [0]
            for value in values:
                states.append(mix(states[-1], value, layer))
            return [mix(value, state) for value, state in zip(values, states[1:], strict=True)]
        exact = [mix(value, layer) for value in values]
        if ratio > 1:
            entries = [mix(sum(exact[e : e + ratio]) % PRIME, 8) for e in range(0, len(exact) - ratio + 1, ratio)]
            whole = [(p + 1) // ratio for p in range(len(exact))]
            seen = [sum(entries[:n]) + sum(exact[n * ratio : p + 1]) for p, n in enumerate(whole)]
            return [mix(value, total % PRIME) for value, total in zip(values, seen, strict=True)]
        codes = exact if group.codec.native else [mix(value, 8) for value in exact]
        return [mix(value, dense(group, p, exact, codes)) for p, value in enumerate(values)]

    def check_books(self, caches: Sequence[SequenceCache]) -> None:
        """Every block is held as often as tree and sequences say; the orders of eviction list what the tree has."""
        tree = self.store.tree
        nodes = list(tree.nodes())
        for pool, blocks in enumerate(self.store.pools):
            held = [0] * blocks.n_blocks
            for cache in caches:
                for block in cache.tables[pool].held():
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
            assert len(node.ids) == self.size or not node.children
            assert node.parent is not None
            assert node.parent.children[node.ids] is node
            assert [child.ids for child in node.line] == sorted(node.children)


def visible(group: Group, position: int) -> list[tuple[int, int, int]]:
    """(logical block, first slot, slot after the last) of all that a query sees, in ascending order."""
    oldest = 0 if group.window is None else max(0, position - group.window + 1)
    spans = [] if not group.sink or oldest < group.block_tokens else [(0, 0, group.block_tokens)]
    for block in range(oldest // group.block_tokens, position // group.block_tokens + 1):
        begin = block * group.block_tokens
        low = 0 if block == 0 and group.sink else max(0, oldest - begin)
        spans.append((block, low, min(group.block_tokens, position + 1 - begin)))
    return spans


def dense(group: Group, position: int, exact: Sequence[int], codes: Sequence[int]) -> int:
    own, total = position // group.block_tokens, 0
    for block, low, high in visible(group, position):
        source = exact if block in (0, own) else codes
        total += sum(source[block * group.block_tokens + low : block * group.block_tokens + high])
    return total % PRIME


def text(n_tokens: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(1000), k=n_tokens)


def disk_cache(model: IntegerModel, root: Path, budget: int = 1 << 30) -> DiskCache:
    """Blocks of the model's memory on disk."""
    sizes = [8 * model.size * len(group.layers) for group in model.store.group_of]

    def read(pool: int, block: int) -> bytes:
        layers = model.store.group_of[pool].layers
        return b"".join(struct.pack(f"<{model.size}Q", *model.memory[pool, block, layer]) for layer in layers)

    def write(pool: int, block: int, data: memoryview) -> None:
        for n, layer in enumerate(model.store.group_of[pool].layers):
            own = struct.unpack_from(f"<{model.size}Q", data, 8 * model.size * n)
            model.memory[pool, block, layer] = list(own)

    return DiskCache(model.store, BlockFiles(root, "paper", sizes, Label(block_tokens=model.size)), read, write, budget)


def serve(
    model: IntegerModel,
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
