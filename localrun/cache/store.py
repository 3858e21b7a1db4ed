"""What sequences hold of the cache: leases on blocks, backed by the pools and the prefix tree. Ints only."""

from collections.abc import Callable, Sequence

from localrun.cache.blocks import NO_BLOCK, BlockPool, BlockTable, OutOfBlocks
from localrun.cache.groups import BLOCK_TOKENS, Group
from localrun.cache.lease import Lease
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree
from localrun.cache.reuse import Hit, Planner

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
        self.planner = Planner(groups)
        self.copy = copy
        self.keep_prefixes = keep_prefixes
        self.on_claim: Callable[[Node, str], None] = lambda node, chat: None

    def open(self, token_ids: Sequence[int], n_prompt: int | None = None, chat: str = "") -> Lease:
        """Lease what is cached of a new sequence, all but its last token, which always has to be computed.

        `n_prompt`: where an answer may be wanted again; what that needs outlasts other blocks. `chat`: the kept one
        that this is of. Raises OutOfBlocks when a block that has to be copied finds no room; then nothing is leased.
        """
        if not self.keep_prefixes:
            return self.open_empty(n_prompt or len(token_ids))
        match = self.tree.match(token_ids)
        hit = self.planner.plan(match, len(token_ids))
        n_full, rest = divmod(hit.n_tokens, BLOCK_TOKENS)
        nodes = [*match.path, match.tail] if match.tail else match.path
        source = nodes[n_full] if rest else None
        lease = Lease(self._tables(), hit, n_prompt or len(token_ids), nodes[:n_full], chat=chat)
        used = nodes[: n_full + (rest > 0)]
        held = (*lease.path[-1:], *used[-1:])
        for node in held:
            self.tree.pin(node)
        try:
            for pool, _ in self._numbered:
                self._take(lease, pool, source)
        except OutOfBlocks:
            self._release(lease)
            raise
        finally:
            for node in used[-1:]:
                self.tree.unpin(node)
        self._use(used, hit.n_tokens)
        for last in lease.path[-1:]:
            self._claim(last, lease)
        return lease

    def open_empty(self, n_prompt: int, chat: str = "") -> Lease:
        """Lease nothing: all will be computed."""
        return Lease(self._tables(), Hit(0, 0), n_prompt, [], private=not self.keep_prefixes, chat=chat)

    def open_private(self) -> Lease:
        """Lease nothing for a sequence that leaves nothing behind for others."""
        return Lease(self._tables(), Hit(0, 0), 0, [], private=True)

    def skip(self, lease: Lease, n_tokens: int) -> None:
        """Let a private sequence count as computed up to `n_tokens`, whatever its blocks hold. Raises OutOfBlocks."""
        for pool, group in self._numbered:
            table, oldest = lease.tables[pool], group.first_block(n_tokens)
            table.first = n_tokens // BLOCK_TOKENS if self._is_ring(pool) else oldest
            if table.first > 0 and (group.sinks or (self._is_ring(pool) and oldest == 0)):
                table.sink = self._allocate(pool)
        self.extend(lease, n_tokens - n_tokens % BLOCK_TOKENS, n_tokens)

    def extend(self, lease: Lease, start: int, stop: int) -> None:
        """Room for a step over tokens start … stop-1. Raises OutOfBlocks; what was allocated stays leased."""
        for pool, table in enumerate(lease.tables):
            if self._is_ring(pool) and not table.blocks:
                table.first = start // BLOCK_TOKENS
            while table.end * BLOCK_TOKENS < stop:
                table.blocks.append(self._allocate(pool))

    def commit(self, lease: Lease, token_ids: Sequence[int], n_computed: int) -> None:
        """The first `n_computed` tokens are computed: full blocks go to the tree, what no query reads any more back."""
        while (lease.n_published + 1) * BLOCK_TOKENS <= n_computed:
            if not lease.private:
                self._publish(lease, token_ids)
            lease.n_published += 1
        for pool, group in self._numbered:
            table, oldest = lease.tables[pool], group.first_block(n_computed)
            if not self._is_ring(pool):
                table.drop_below(oldest, keep_sink=group.sinks)
            else:
                table.drop_below((n_computed - 1) // BLOCK_TOKENS + 1 - RING_BLOCKS, keep_sink=True)
                if oldest > 0 and not group.sinks:
                    table.drop_sink()

    def close(self, lease: Lease, token_ids: Sequence[int]) -> None:
        """Give the blocks back; the tree keeps `token_ids`, all of which must have been computed."""
        n_tokens = len(token_ids)
        if not lease.private and n_tokens >= lease.hit.n_tokens:
            self.commit(lease, token_ids, n_tokens)
            nodes = list(lease.path)
            if n_tokens % BLOCK_TOKENS:
                nodes.append(self._put(lease, token_ids, n_tokens // BLOCK_TOKENS, ended=True))
                self._claim(nodes[-1], lease)
            self._use(nodes, n_tokens)
        self._release(lease)

    def abandon(self, lease: Lease) -> None:
        """Give the blocks back and forget what this sequence put into the tree: it may be wrong."""
        own = lease.path[lease.hit.n_tokens // BLOCK_TOKENS :]
        self._release(lease)
        if own:
            self.tree.prune(own[0])

    def plant(self, parent: Node | None, ids: Sequence[int], fill: Sequence[Fill | None]) -> Node:
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

    def _take(self, lease: Lease, pool: int, source: Node | None) -> None:
        """Lease one pool's part of a hit: whole blocks shared, the one that will be written to copied."""
        group, table, hit = self.group_of[pool], lease.tables[pool], lease.hit
        shared: list[Node] = []
        if hit.replays and (group.replayable or self._is_ring(pool)):
            source = None
            table.first = hit.start // BLOCK_TOKENS
        elif self._is_ring(pool):
            table.first = len(lease.path)
        else:
            table.first = group.first_block(hit.start)
            shared = lease.path[table.first :]
        if table.first > 0 and (group.sinks or (self._is_ring(pool) and group.first_block(hit.start) == 0)):
            table.sink = table.pool.share(lease.path[0].blocks[pool])
        table.blocks.extend(table.pool.share(node.blocks[pool]) for node in shared)
        if source is not None:
            table.blocks.append(self._copied(pool, source))

    def _copied(self, pool: int, source: Node) -> int:
        """A copy of a shared block that is about to be written to."""
        shared = self.pools[pool].share(source.blocks[pool])  # or making room might evict it
        try:
            own = self._allocate(pool)
            self.copy(pool, shared, own)
            return own
        finally:
            self.pools[pool].release(shared)

    def _publish(self, lease: Lease, token_ids: Sequence[int]) -> None:
        """Offer the next full block to the tree. One that is known may have lost what was replayed."""
        node = self._put(lease, token_ids, lease.n_published)
        self._claim(node, lease)
        if lease.n_published == len(lease.path):
            self.tree.pin(node)
            for before in lease.path[-1:]:
                self.tree.unpin(before)
            lease.path.append(node)
        self._keep_windows(lease, lease.n_published)

    def _put(self, lease: Lease, token_ids: Sequence[int], block: int, ended: bool = False) -> Node:
        """The tree's node for one logical block; with `ended` the last one, that the next turn goes on in."""
        ids = tuple(token_ids[block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS])
        # Where this text left what was known, and where its answer begins, others may go on inside a block.
        ends = (lease.hit.n_tokens // BLOCK_TOKENS, (lease.n_prompt - 1) // BLOCK_TOKENS)
        blocks = []
        for pool, group in self._numbered:
            replayed = lease.hit.replays and group.replayable
            exact = not replayed or block >= group.first_block(lease.hit.n_tokens)
            offered = exact and (not self._is_ring(pool) or block in (0, *ends) or ended)
            blocks.append(lease.tables[pool].at(block) if offered else NO_BLOCK)
        node = self.tree.put(lease.path[block - 1] if block else None, ids, blocks)
        self._keep_first(node)
        return node

    def _claim(self, node: Node, lease: Lease) -> None:
        """All of the text up to a node belongs to the lease's chat."""
        new = []
        while lease.chat and node.parent is not None and lease.chat not in node.chats:
            node.chats.add(lease.chat)
            new.append(node)
            node = node.parent
        for one in reversed(new):
            self.on_claim(one, lease.chat)

    def _keep_windows(self, lease: Lease, block: int) -> None:
        """After a new block: keep what is seen from places where another text may leave this one.

        These are the beginning of what is new, the question at the end of the prompt, and the beginning of the answer.
        """
        known, last = lease.hit.n_tokens, lease.n_prompt - 1
        for pool, group in self._windowed:
            if known and known // BLOCK_TOKENS <= block <= known // BLOCK_TOKENS + 1:
                self.tree.keep(lease.path[group.first_block(known) : block + 1], pool)
            for place in (max(known, last - QUESTION_TOKENS), last):
                if group.first_block(place) <= block <= last // BLOCK_TOKENS:
                    self.tree.keep(lease.path[group.first_block(place) : block + 1], pool)

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

    def _release(self, lease: Lease) -> None:
        for last in lease.path[-1:]:
            self.tree.unpin(last)
        lease.path = []
        for table in lease.tables:
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
