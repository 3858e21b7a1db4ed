"""The cache store: blocks of sequences, from the pools and the prefix tree. Ints only."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable, OutOfBlocks
from localrun.cache.groups import Group, block_tokens_of
from localrun.cache.kinds.interface import HeldBlocks, Reuse
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree
from localrun.cache.retention import Retention
from localrun.cache.reuse import ReusePlanner
from localrun.cache.sequence_cache import SequenceCache, branch_points

OWN_REFERENCES = 2  # to a block of one sequence only, while its tables are rebuilt

Fill = Callable[[int], None]  # writes what a block is to hold
Copy = Callable[[int, int, int], None]  # (pool, source, target): block `target` becomes a copy of block `source`


def copy_nothing(pool: int, source: int, target: int) -> None:
    """Copy function of a store without a backend."""


class CacheStore:
    """All blocks of one engine. Blocks of finished sequences stay in the tree until they are needed.

    Pools are numbered: coded blocks of every group first, then 16-bit blocks of the groups whose codec is quantised.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        n_blocks: Sequence[int],
        ring_blocks: Sequence[int] = (),
        copy: Copy = copy_nothing,
        keep_prefixes: bool = True,
    ) -> None:
        """Create the pools.

        `n_blocks` and `ring_blocks`: blocks per group. `copy` is called while a sequence is opened.
        """
        self.groups = tuple(groups)
        self.planner = ReusePlanner(groups)
        self.rules, self.block_tokens = self.planner.rules, block_tokens_of(groups)
        rings = [number for number, group in enumerate(groups) if group.has_ring]
        self.group_of = (*groups, *(groups[number] for number in rings))  # of every pool
        self.pools = tuple(BlockPool(n) for n in (*n_blocks, *(ring_blocks[number] for number in rings)))
        self.tree = PrefixTree(self.pools, [rules.required for rules in self.rules], self.block_tokens)
        self.allocate = [partial(self.tree.allocate, rules.pool) for rules in self.rules]  # a block of every pool
        self.retention = Retention(self.tree, self.rules, len(groups))
        self.copy = copy
        self.keep_prefixes = keep_prefixes
        self.on_claim: Callable[[Node, str], None] = lambda node, chat: None

    def open(self, token_ids: Sequence[int], n_prompt: int | None = None, chat: str = "") -> SequenceCache:
        """Open a sequence with its cached prefix, at most all but its last token, which is always computed.

        `n_prompt`: position where another answer may begin; what that needs outlasts other blocks. `chat`: id of the
        stored chat. Raises OutOfBlocks when a block that has to be copied finds no room; then nothing is taken.
        """
        if not self.keep_prefixes:
            return self.open_empty(n_prompt or len(token_ids))
        match = self.tree.match(token_ids)
        known = self.planner.held(match)
        reuse = self.planner.plan(match, known, len(token_ids))
        n_full, rest = divmod(reuse.n_tokens, self.block_tokens)
        nodes = [*match.path, match.tail] if match.tail else match.path
        used = nodes[: n_full + (rest > 0)]
        cache = self._cache(self._tables(), reuse, n_prompt or len(token_ids), nodes[:n_full], chat=chat)
        held = (*cache.path[-1:], *used[-1:])
        for node in held:
            self.tree.pin(node)
        try:
            for rules, table in zip(self.rules, cache.tables, strict=True):
                rules.take(table, reuse, known, partial(self._writable, rules.pool))
        except OutOfBlocks:
            self._release(cache)
            raise
        finally:
            for node in used[-1:]:
                self.tree.unpin(node)
        self.retention.use(used, reuse.n_tokens)
        for last in cache.path[-1:]:
            self._claim(last, cache)
        return cache

    def n_known(self, token_ids: Sequence[int]) -> int:
        """Number of tokens of a new sequence that `open` would find."""
        return self.known(token_ids).n_tokens

    def known(self, token_ids: Sequence[int]) -> Reuse:
        """The reuse that `open` would begin a new sequence with."""
        if not self.keep_prefixes:
            return Reuse(0, 0)
        match = self.tree.match(token_ids)
        return self.planner.plan(match, self.planner.held(match), len(token_ids))

    def expect_fork(self, cache: SequenceCache, n_tokens: int) -> None:
        """Keep what another sequence needs that will continue from the first `n_tokens` tokens, whole blocks."""
        if n_tokens not in cache.points.forks:
            cache.points = replace(cache.points, forks=(*cache.points.forks, n_tokens))

    def truncate(self, cache: SequenceCache, n_tokens: int) -> int:
        """Drop all but the first `n_tokens` computed tokens. Returns the position to continue from.

        The position is less than `n_tokens` where a block that is read in 16 bits is gone, a window has moved on (the
        tokens between are then replayed, as after `open`), a state exists only further back, or a block that the tree
        shares finds no room for a copy. The tree keeps its blocks of the dropped tokens. Tokens that were computed and
        never committed are dropped without this.
        """
        held = self._held(cache, n_tokens)
        tables, reuse = self._tables(), self.planner.rebuild(held, self.planner.stored(held, n_tokens))
        try:
            for rules, table, own in zip(self.rules, tables, cache.tables, strict=True):
                rules.take(table, reuse, held, partial(self._writable, rules.pool, own=own))
        except OutOfBlocks:
            for table in tables:
                table.clear()
            return self.truncate(cache, n_tokens // self.block_tokens * self.block_tokens)  # nothing to copy
        for table in cache.tables:
            table.clear()
        path = cache.path[: reuse.n_tokens // self.block_tokens]
        for node in path[-1:]:
            self.tree.pin(node)
        for node in cache.path[-1:]:
            self.tree.unpin(node)
        cache.tables, cache.path, cache.reuse = tables, path, reuse
        cache.points = replace(branch_points(reuse, cache.points.answer + 1), forks=cache.points.forks)
        cache.n_shared = min(cache.n_shared, reuse.n_tokens)
        cache.n_published = min(cache.n_published, reuse.start // self.block_tokens)
        return reuse.start

    def _held(self, cache: SequenceCache, n_tokens: int) -> HeldBlocks:
        """The blocks of the first `n_tokens` tokens of a sequence, in its tables or in the tree.

        During a replay the tables are not exact for the replayed tokens.
        """
        replaying = cache.reuse.replays and n_tokens < cache.reuse.n_tokens
        exact = cache.reuse.start // self.block_tokens if replaying else n_tokens
        held, ends = [], []
        for block in range(-(-n_tokens // self.block_tokens)):
            known = cache.path[block].blocks if block < len(cache.path) else [NO_BLOCK] * len(self.pools)
            inexact = [block >= exact and rules.is_rebuilt for rules in self.rules]
            own = [NO_BLOCK if inexact[pool] else table.at(block) for pool, table in enumerate(cache.tables)]
            held.append([ours if ours != NO_BLOCK else theirs for ours, theirs in zip(own, known, strict=True)])
            ends.append(min(table.end_of(block, (block + 1) * self.block_tokens) for table in cache.tables))
        return HeldBlocks(held, ends)

    def open_empty(self, n_prompt: int, chat: str = "") -> SequenceCache:
        """Open a sequence without reuse."""
        return self._cache(self._tables(), Reuse(0, 0), n_prompt, [], private=not self.keep_prefixes, chat=chat)

    def open_private(self) -> SequenceCache:
        """Open a sequence without reuse that leaves nothing in the tree."""
        return self._cache(self._tables(), Reuse(0, 0), 0, [], private=True)

    def skip(self, cache: SequenceCache, n_tokens: int) -> None:
        """Count a private sequence as computed up to `n_tokens`, whatever its blocks hold. Raises OutOfBlocks."""
        for rules, table, allocate in zip(self.rules, cache.tables, self.allocate, strict=True):
            rules.skip(table, n_tokens, allocate)

    def extend(self, cache: SequenceCache, start: int, stop: int) -> None:
        """Allocate for a step over tokens start … stop-1. Raises OutOfBlocks; what was allocated stays."""
        for rules, table, allocate in zip(self.rules, cache.tables, self.allocate, strict=True):
            rules.extend(table, start, stop, cache.points, allocate)

    def reserve_ahead(self, cache: SequenceCache) -> None:
        """Allocate what a step of a token needs besides that begins while the one that was extended for is under way,
        in the same block. Its sequence has it for the next step. Raises OutOfBlocks; what was allocated stays."""
        for table, allocate in zip(cache.tables, self.allocate, strict=True):
            table.reserve_ahead(allocate)

    def commit(self, cache: SequenceCache, token_ids: Sequence[int], n_computed: int) -> int:
        """Commit the first `n_computed` tokens: full blocks go to the tree, blocks that no query reads are released.

        Returns the position to continue from: less than `n_computed` only where there is a state and a part of a step
        counts.
        """
        while (cache.n_published + 1) * self.block_tokens <= n_computed:
            if not cache.private:
                self._publish(cache, token_ids)
            cache.n_published += 1
        tables = zip(self.rules, cache.tables, strict=True)
        reached = min([rules.retire(table, n_computed) for rules, table in tables])
        return n_computed if reached == n_computed else self.truncate(cache, n_computed)

    def close(self, cache: SequenceCache, token_ids: Sequence[int]) -> None:
        """Release the blocks; the tree keeps `token_ids`, all of which must have been computed."""
        n_tokens = len(token_ids)
        if not cache.private and n_tokens >= cache.reuse.n_tokens:
            self.commit(cache, token_ids, n_tokens)
            nodes = list(cache.path)
            n_full, rest = divmod(n_tokens, self.block_tokens)
            if rest or (n_full and self.planner.accumulates):
                last = (n_tokens - 1) // self.block_tokens
                nodes[last:] = [self._put(cache, token_ids, last, ended=True)]
                self._claim(nodes[-1], cache)
            self.retention.use(nodes, n_tokens)
        self._release(cache)

    def abandon(self, cache: SequenceCache) -> None:
        """Release the blocks and remove what this sequence put into the tree, which may be wrong."""
        own = cache.path[cache.n_shared // self.block_tokens :]
        self._release(cache)
        if own:
            self.tree.prune(own[0])

    def insert(self, parent: Node | None, ids: Sequence[int], fill: Sequence[Fill | None]) -> Node:
        """Put a block that was stored elsewhere after `parent` (None: at the beginning of a text).

        `fill[p]` writes the content of a block of pool p, None where that pool has none; it is not called where the
        tree has the block already. Raises OutOfBlocks, and then the tree is as it was. The caller holds the path up to
        `parent`, since making room may evict it.
        """
        known = (parent or self.tree.root).children.get(tuple(ids))
        blocks = [NO_BLOCK] * len(self.pools)
        shared = self.tree.hold(known) if known else []
        try:
            for pool, write in enumerate(fill):
                if write is not None and (known is None or known.blocks[pool] == NO_BLOCK):
                    blocks[pool] = self.tree.allocate(pool)
                    write(blocks[pool])
            node = self.tree.put(parent, tuple(ids), blocks)
            self.retention.keep_first(node)
            return node
        finally:
            self.tree.release(blocks)
            if known:
                self.tree.let_go(known, shared)

    def _writable(self, pool: int, block: int, own: BlockTable | None = None) -> int:
        """A writable block with the same content: a copy, or the block itself where only the table `own` has it."""
        shared = self.pools[pool].share(block)  # or making room might evict it
        if own is not None and self.pools[pool].references[block] == OWN_REFERENCES and block in own.held():
            return shared
        try:
            copy = self.tree.allocate(pool)
            self.copy(pool, shared, copy)
            return copy
        finally:
            self.pools[pool].release(shared)

    def _publish(self, cache: SequenceCache, token_ids: Sequence[int]) -> None:
        """Offer the next full block to the tree. A known node may have lost what was replayed."""
        node = self._put(cache, token_ids, cache.n_published)
        self._claim(node, cache)
        if cache.n_published == len(cache.path):
            self.tree.pin(node)
            for before in cache.path[-1:]:
                self.tree.unpin(before)
            cache.path.append(node)
        self.retention.keep_tails(cache, cache.n_published)

    def _put(self, cache: SequenceCache, token_ids: Sequence[int], block: int, ended: bool = False) -> Node:
        """The tree's node for one logical block; with `ended` the last one, where the next turn continues."""
        ids = tuple(token_ids[block * self.block_tokens : (block + 1) * self.block_tokens])
        points, offered = cache.points, []
        for rules, table in zip(self.rules, cache.tables, strict=True):
            wanted = rules.offers(cache.reuse, points, block, ended)
            offered.append(table.at(block) if wanted else NO_BLOCK)
        node = self.tree.put(cache.path[block - 1] if block else None, ids, offered)
        self.retention.keep_first(node)
        return node

    def _claim(self, node: Node, cache: SequenceCache) -> None:
        """Note that the text up to a node belongs to the sequence's chat."""
        for one in node.claim(cache.chat) if cache.chat else ():
            self.on_claim(one, cache.chat)

    def _release(self, cache: SequenceCache) -> None:
        for last in cache.path[-1:]:
            self.tree.unpin(last)
        cache.path = []
        for table in cache.tables:
            table.clear()

    def _cache(
        self,
        tables: list[BlockTable],
        reuse: Reuse,
        n_prompt: int,
        path: list[Node],
        private: bool = False,
        chat: str = "",
    ) -> SequenceCache:
        n_published = reuse.start // self.block_tokens
        points = branch_points(reuse, n_prompt)
        return SequenceCache(tables, reuse, points, path, private, chat, n_published, n_shared=reuse.n_tokens)

    def _tables(self) -> list[BlockTable]:
        return [rules.table(pool) for rules, pool in zip(self.rules, self.pools, strict=True)]
