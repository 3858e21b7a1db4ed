"""What sequences hold of the cache: blocks, out of the pools and the prefix tree. Ints only."""

from collections.abc import Callable, Sequence

from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable, OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS, Group
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree
from localrun.cache.reuse import Held, Reuse, ReusePlanner
from localrun.cache.sequence_cache import SequenceCache

OWN_REFERENCES = 2  # to a block that only one sequence has, while its tables are made anew
RING_BLOCKS = 2  # 16-bit blocks at the end of a sequence that stay after a step: a rollback finds its block there
QUESTION_TOKENS = 256  # at the end of a prompt, where it may be edited: what is seen from there is kept, too

Fill = Callable[[int], None]  # writes what a block is to hold
Copy = Callable[[int, int, int], None]  # (pool, source, target): block `target` becomes a copy of block `source`


def copy_nothing(pool: int, source: int, target: int) -> None:
    """For stores without a backend behind them."""


class CacheStore:
    """All blocks of one engine. What finished sequences computed stays in the tree until its blocks are needed.

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
        """`n_blocks` and `ring_blocks`: blocks a group. `copy` is called while a sequence is opened."""
        rings = [number for number, group in enumerate(groups) if not group.codec.native]
        self.groups = tuple(groups)
        self.group_of = (*groups, *(groups[number] for number in rings))  # of every pool
        self.pools = tuple(BlockPool(n) for n in (*n_blocks, *(ring_blocks[number] for number in rings)))
        self._numbered = tuple(enumerate(self.group_of))
        self._windowed = tuple((number, group) for number, group in enumerate(groups) if group.replayable)
        self.tree = PrefixTree(self.pools, [not self._is_ring(p) and not g.replayable for p, g in self._numbered])
        self.planner = ReusePlanner(groups)
        self.copy = copy
        self.keep_prefixes = keep_prefixes
        self.on_claim: Callable[[Node, str], None] = lambda node, chat: None

    def open(self, token_ids: Sequence[int], n_prompt: int | None = None, chat: str = "") -> SequenceCache:
        """Take what is cached of a new sequence, all but its last token, which always has to be computed.

        `n_prompt`: where an answer may be wanted again; what that needs outlasts other blocks. `chat`: the kept one
        that this is of. Raises OutOfBlocks when a block that has to be copied finds no room; then nothing is taken.
        """
        if not self.keep_prefixes:
            return self.open_empty(n_prompt or len(token_ids))
        match = self.tree.match(token_ids)
        reuse = self.planner.plan(match, len(token_ids))
        n_full, rest = divmod(reuse.n_tokens, BLOCK_TOKENS)
        nodes = [*match.path, match.tail] if match.tail else match.path
        cache = SequenceCache(self._tables(), reuse, n_prompt or len(token_ids), nodes[:n_full], chat=chat)
        used = nodes[: n_full + (rest > 0)]
        held = (*cache.path[-1:], *used[-1:])
        for node in held:
            self.tree.pin(node)
        try:
            held_blocks = [node.blocks for node in used]
            for pool, table in enumerate(cache.tables):
                self._take(table, pool, reuse, held_blocks, own=False)
        except OutOfBlocks:
            self._release(cache)
            raise
        finally:
            for node in used[-1:]:
                self.tree.unpin(node)
        self._use(used, reuse.n_tokens)
        for last in cache.path[-1:]:
            self._claim(last, cache)
        return cache

    def truncate(self, cache: SequenceCache, n_tokens: int) -> int:
        """Forget all but the first `n_tokens` computed tokens -> the position to go on from, `n_tokens` or less.

        It is less where a block that is read in 16 bits has gone, a window has moved on (then what lies between is
        replayed, as after `open`), or a block that the tree has, too, finds no room for a copy. What the tree has of
        the forgotten tokens stays in it. Those that were computed and never committed are forgotten without this.
        """
        held = self._held(cache, n_tokens)
        tables, reuse = self._tables(), self.planner.rebuild(held, self.planner.stored(held, n_tokens))
        try:
            for pool, table in enumerate(tables):
                self._take(table, pool, reuse, held, own=True)
        except OutOfBlocks:
            for table in tables:
                table.clear()
            return self.truncate(cache, n_tokens // BLOCK_TOKENS * BLOCK_TOKENS)  # whole blocks: nothing to copy
        for table in cache.tables:
            table.clear()
        path = cache.path[: reuse.n_tokens // BLOCK_TOKENS]
        for node in path[-1:]:
            self.tree.pin(node)
        for node in cache.path[-1:]:
            self.tree.unpin(node)
        cache.tables, cache.path, cache.reuse = tables, path, reuse
        cache.n_shared = min(cache.n_shared, reuse.n_tokens)
        cache.n_published = min(cache.n_published, reuse.start // BLOCK_TOKENS)
        return reuse.start

    def _held(self, cache: SequenceCache, n_tokens: int) -> list[list[int]]:
        """Where the first `n_tokens` tokens of a sequence are, by logical block and pool: in its tables or in the tree.

        Of what is replayed, the tables are not exact until the replay is through.
        """
        replaying = cache.reuse.replays and n_tokens < cache.reuse.n_tokens
        exact = cache.reuse.start // BLOCK_TOKENS if replaying else n_tokens
        held = []
        for block in range(-(-n_tokens // BLOCK_TOKENS)):
            known = cache.path[block].blocks if block < len(cache.path) else [NO_BLOCK] * len(self.pools)
            inexact = [block >= exact and (g.replayable or self._is_ring(p)) for p, g in self._numbered]
            own = [NO_BLOCK if inexact[pool] else table.at(block) for pool, table in enumerate(cache.tables)]
            held.append([ours if ours != NO_BLOCK else theirs for ours, theirs in zip(own, known, strict=True)])
        return held

    def open_empty(self, n_prompt: int, chat: str = "") -> SequenceCache:
        """Take nothing: all will be computed."""
        return SequenceCache(self._tables(), Reuse(0, 0), n_prompt, [], private=not self.keep_prefixes, chat=chat)

    def open_private(self) -> SequenceCache:
        """Take nothing for a sequence that leaves nothing behind for others."""
        return SequenceCache(self._tables(), Reuse(0, 0), 0, [], private=True)

    def skip(self, cache: SequenceCache, n_tokens: int) -> None:
        """Let a private sequence count as computed up to `n_tokens`, whatever its blocks hold. Raises OutOfBlocks."""
        for pool, group in self._numbered:
            table, oldest = cache.tables[pool], group.first_block(n_tokens)
            table.first = n_tokens // BLOCK_TOKENS if self._is_ring(pool) else oldest
            if table.first > 0 and (group.sinks or (self._is_ring(pool) and oldest == 0)):
                table.sink = self._allocate(pool)
        self.extend(cache, n_tokens - n_tokens % BLOCK_TOKENS, n_tokens)

    def extend(self, cache: SequenceCache, start: int, stop: int) -> None:
        """Room for a step over tokens start … stop-1. Raises OutOfBlocks; what was allocated stays."""
        for pool, table in enumerate(cache.tables):
            if self._is_ring(pool) and not table.blocks:
                table.first = start // BLOCK_TOKENS
            while table.end * BLOCK_TOKENS < stop:
                table.blocks.append(self._allocate(pool))

    def commit(self, cache: SequenceCache, token_ids: Sequence[int], n_computed: int) -> None:
        """The first `n_computed` tokens are computed: full blocks go to the tree, what no query reads any more back."""
        while (cache.n_published + 1) * BLOCK_TOKENS <= n_computed:
            if not cache.private:
                self._publish(cache, token_ids)
            cache.n_published += 1
        for pool, group in self._numbered:
            table, oldest = cache.tables[pool], group.first_block(n_computed)
            if not self._is_ring(pool):
                table.drop_below(oldest, keep_sink=group.sinks)
            else:
                table.drop_below((n_computed - 1) // BLOCK_TOKENS + 1 - RING_BLOCKS, keep_sink=True)
                if oldest > 0 and not group.sinks:
                    table.drop_sink()

    def close(self, cache: SequenceCache, token_ids: Sequence[int]) -> None:
        """Give the blocks back; the tree keeps `token_ids`, all of which must have been computed."""
        n_tokens = len(token_ids)
        if not cache.private and n_tokens >= cache.reuse.n_tokens:
            self.commit(cache, token_ids, n_tokens)
            nodes = list(cache.path)
            if n_tokens % BLOCK_TOKENS:
                nodes.append(self._put(cache, token_ids, n_tokens // BLOCK_TOKENS, ended=True))
                self._claim(nodes[-1], cache)
            self._use(nodes, n_tokens)
        self._release(cache)

    def abandon(self, cache: SequenceCache) -> None:
        """Give the blocks back and forget what this sequence put into the tree: it may be wrong."""
        own = cache.path[cache.n_shared // BLOCK_TOKENS :]
        self._release(cache)
        if own:
            self.tree.prune(own[0])

    def insert(self, parent: Node | None, ids: Sequence[int], fill: Sequence[Fill | None]) -> Node:
        """Put a block that was kept elsewhere after `parent` (None: at the beginning of a text).

        `fill[p]` writes what belongs into a block of pool p, None where there is nothing for that pool; it is not
        called where the tree has it already. Raises OutOfBlocks, and then the tree is as it was. Hold all of the path
        meanwhile, or making room may take from it.
        """
        known = (parent or self.tree.root).children.get(tuple(ids))
        blocks = [NO_BLOCK] * len(self.pools)
        held = [(node, self.hold(node)) for node in (parent, known) if node is not None]
        try:
            for pool, write in enumerate(fill):
                if write is not None and (known is None or known.blocks[pool] == NO_BLOCK):
                    blocks[pool] = self._allocate(pool)
                    write(blocks[pool])
            node = self.tree.put(parent, tuple(ids), blocks)
            self._keep_first(node)
            return node
        finally:
            self._release_blocks(blocks)
            for node, shared in held:
                self.let_go(node, shared)

    def hold(self, node: Node) -> list[int]:
        """Keep a node and its blocks from eviction. Gives the blocks, for `let_go`."""
        self.tree.pin(node)
        for pool, block in enumerate(node.blocks):
            if block != NO_BLOCK:
                self.pools[pool].share(block)
        return list(node.blocks)

    def let_go(self, node: Node, blocks: Sequence[int]) -> None:
        self._release_blocks(blocks)
        self.tree.unpin(node)

    def _release_blocks(self, blocks: Sequence[int]) -> None:
        for pool, block in enumerate(blocks):
            if block != NO_BLOCK:
                self.pools[pool].release(block)

    def _take(self, table: BlockTable, pool: int, reuse: Reuse, held: Sequence[Held], own: bool) -> None:
        """Fill one pool's table with what is reused: whole blocks shared, the one that will be written to copied.

        With `own` the blocks are the sequence's: one that nobody else has is written to as it is.
        """
        group, (n_full, rest) = self.group_of[pool], divmod(reuse.n_tokens, BLOCK_TOKENS)
        replayed = reuse.replays and (group.replayable or self._is_ring(pool))
        if replayed:
            table.first = reuse.start // BLOCK_TOKENS
        else:
            table.first = n_full if self._is_ring(pool) else group.first_block(reuse.start)
        if table.first > 0 and (group.sinks or (self._is_ring(pool) and group.first_block(reuse.start) == 0)):
            table.sink = table.pool.share(held[0][pool])
        if not replayed:
            table.blocks.extend(table.pool.share(blocks[pool]) for blocks in held[table.first : n_full])
            if rest:
                table.blocks.append(self._writable(pool, held[n_full][pool], own))

    def _writable(self, pool: int, block: int, own: bool) -> int:
        """A copy of a shared block that is about to be written to."""
        shared = self.pools[pool].share(block)  # or making room might evict it
        if own and self.pools[pool].references[block] == OWN_REFERENCES:
            return shared
        try:
            copy = self._allocate(pool)
            self.copy(pool, shared, copy)
            return copy
        finally:
            self.pools[pool].release(shared)

    def _publish(self, cache: SequenceCache, token_ids: Sequence[int]) -> None:
        """Offer the next full block to the tree. One that is known may have lost what was replayed."""
        node = self._put(cache, token_ids, cache.n_published)
        self._claim(node, cache)
        if cache.n_published == len(cache.path):
            self.tree.pin(node)
            for before in cache.path[-1:]:
                self.tree.unpin(before)
            cache.path.append(node)
        self._keep_windows(cache, cache.n_published)

    def _put(self, cache: SequenceCache, token_ids: Sequence[int], block: int, ended: bool = False) -> Node:
        """The tree's node for one logical block; with `ended` the last one, that the next turn goes on in."""
        ids = tuple(token_ids[block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS])
        # Where this text left what was known, and where its answer begins, others may go on inside a block.
        ends = (cache.reuse.n_tokens // BLOCK_TOKENS, (cache.n_prompt - 1) // BLOCK_TOKENS)
        blocks = []
        for pool, group in self._numbered:
            replayed = cache.reuse.replays and group.replayable
            exact = not replayed or block >= group.first_block(cache.reuse.n_tokens)
            offered = exact and (not self._is_ring(pool) or block in (0, *ends) or ended)
            blocks.append(cache.tables[pool].at(block) if offered else NO_BLOCK)
        node = self.tree.put(cache.path[block - 1] if block else None, ids, blocks)
        self._keep_first(node)
        return node

    def _claim(self, node: Node, cache: SequenceCache) -> None:
        """All of the text up to a node belongs to the sequence's chat."""
        new = []
        while cache.chat and node.parent is not None and cache.chat not in node.chats:
            node.chats.add(cache.chat)
            new.append(node)
            node = node.parent
        for one in reversed(new):
            self.on_claim(one, cache.chat)

    def _keep_windows(self, cache: SequenceCache, block: int) -> None:
        """After a new block: keep what is seen from places where another text may leave this one.

        These are the beginning of what is new, the question at the end of the prompt, and the beginning of the answer.
        """
        known, last = cache.reuse.n_tokens, cache.n_prompt - 1
        for pool, group in self._windowed:
            if known and known // BLOCK_TOKENS <= block <= known // BLOCK_TOKENS + 1:
                self.tree.keep(cache.path[group.first_block(known) : block + 1], pool)
            for place in (max(known, last - QUESTION_TOKENS), last):
                if group.first_block(place) <= block <= last // BLOCK_TOKENS:
                    self.tree.keep(cache.path[group.first_block(place) : block + 1], pool)

    def _keep_first(self, node: Node) -> None:
        """Block 0 is read in 16 bits by all that goes on from it."""
        if node.parent is self.tree.root:
            for pool in range(len(self.groups), len(self.pools)):
                self.tree.keep([node], pool)

    def _use(self, nodes: Sequence[Node], n_tokens: int) -> None:
        """A sequence of `n_tokens` tokens along these nodes is, or may be, gone on with: note what that reads."""
        for pool, group in self._numbered:
            seen = nodes[group.first_block(n_tokens) :]
            self.tree.use(nodes[-1:] if self._is_ring(pool) else seen, pool)
            self.tree.use(nodes[:1], pool)
        for pool, group in self._windowed:
            self.tree.keep(nodes[group.first_block(n_tokens) :], pool)

    def _release(self, cache: SequenceCache) -> None:
        for last in cache.path[-1:]:
            self.tree.unpin(last)
        cache.path = []
        for table in cache.tables:
            table.clear()

    def _allocate(self, pool: int) -> int:
        while self.pools[pool].n_free == 0:
            if not self.tree.evict(pool):
                raise OutOfBlocks
        return self.pools[pool].allocate()

    def _tables(self) -> list[BlockTable]:
        return [BlockTable(pool) for pool in self.pools]

    def _is_ring(self, pool: int) -> bool:
        return pool >= len(self.groups)
