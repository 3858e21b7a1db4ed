"""The prefix tree: token ids to the blocks that hold their keys and values. Ints only, no tensors."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK, BlockPool, OutOfBlocks
from localrun.cache.bulk import otherwise
from localrun.cache.eviction_queue import EvictionQueue
from localrun.cache.node import Node

REMEMBERED = 4096  # evicted blocks whose loss can still be named

Blocks = Sequence[int]  # one block a pool, NO_BLOCK where a pool has none


@dataclass(frozen=True, slots=True)
class Match:
    """The part of a sequence in the tree: full nodes on its path, and one more that shares `n_tail` tokens."""

    path: list[Node]
    tail: Node | None
    n_tail: int
    evicted: bool  # the tree knew more of it once
    otherwise: bool = False  # the tree knows more of it, read in bulk where it is not now or the other way round

    @property
    def n_tokens(self) -> int:
        return (len(self.path) * len(self.path[0].ids) if self.path else 0) + self.n_tail

    @property
    def differs(self) -> bool:
        """Whether the tree continues from here, but with other tokens."""
        last = self.path[-1] if self.path else None
        if self.tail is not None:
            return self.n_tail < len(self.tail.ids)
        return last is not None and bool(last.children)


class PrefixTree:
    """Every prefix computed so far, over all chats and branches. Prefixes are compared by ids.

    The tree holds one reference on each of its blocks. Each pool has its own eviction order: a node may have lost its
    block in one pool and keep it in another. `required` says for each pool whether nodes are useless without its
    blocks; there a path is used from its end to its beginning, so the oldest node is always a leaf.
    """

    def __init__(self, pools: Sequence[BlockPool], required: Sequence[bool], block_tokens: int) -> None:
        self.pools = tuple(pools)
        self.block_tokens = block_tokens
        self.required = tuple(required)
        self.queues = tuple(EvictionQueue(pool, index) for index, pool in enumerate(pools))
        self.root = Node((), 0, None, [])
        self.evicted: OrderedDict[int, None] = OrderedDict()  # keys of nodes that were dropped
        self.n_tokens = 0
        self.on_evict: Callable[[Node], None] = lambda node: None  # called before a node loses a block for want of room

    def match(self, token_ids: Sequence[int]) -> Match:
        """The longest known prefix of `token_ids`. It holds no reference for the caller."""
        node = self.root
        path: list[Node] = []
        while True:
            start = len(path) * self.block_tokens
            wanted = tuple(token_ids[start : start + self.block_tokens])
            child = node.children.get(wanted) if len(wanted) == self.block_tokens else None
            if child is None:
                break
            path.append(child)
            node = child
        n_tail, tail = node.nearest(wanted)
        read_otherwise = not n_tail and node.nearest(otherwise(wanted))[0] > 0
        return Match(path, tail, n_tail, key_of(node, wanted) in self.evicted, read_otherwise)

    def put(self, parent: Node | None, ids: tuple[int, ...], blocks: Blocks) -> Node:
        """Store computed tokens after `parent`: a new node, or missing blocks of a known one."""
        parent = parent or self.root
        known = parent.children.get(ids)
        if known is None:
            before, behind = parent.neighbours(ids)
            if behind is not None and behind.ids[: len(ids)] == ids:
                return behind  # the tree knows more of it
            if before is not None and ids[: len(before.ids)] == before.ids:
                self._drop(before)  # the sequence went on from here
            known = Node(ids, key_of(parent, ids), parent, [NO_BLOCK] * len(self.pools))
            parent.add(known)
            self.evicted.pop(known.key, None)
            self.n_tokens += len(ids)
        for index, block in enumerate(blocks):
            if block != NO_BLOCK:
                self._fill(known, index, block)
        return known

    def use(self, nodes: Sequence[Node], index: int) -> None:
        """Note the use of these nodes' blocks in one pool; the nodes are of one path."""
        for node in reversed(nodes) if self.required[index] else nodes:
            if node.blocks[index] != NO_BLOCK:
                self.queues[index].use(node)

    def keep(self, nodes: Sequence[Node], index: int) -> None:
        """Let the blocks of these nodes of one path outlast others in one pool, if all of them exist."""
        self.queues[index].keep(tuple(nodes))

    def allocate(self, index: int) -> int:
        """Allocate a block of one pool, evicting from the tree where none is free. Raises OutOfBlocks."""
        while self.pools[index].n_free == 0:
            if not self.evict(index):
                raise OutOfBlocks
        return self.pools[index].allocate()

    def evict(self, index: int) -> bool:
        """Free the least recently used block of one pool that no sequence holds. False when there is none."""
        node = self.queues[index].victim()
        if node is None:
            return False
        self.on_evict(node)
        self._strip(node, index)
        self._drop_useless(node)
        return True

    def pin(self, node: Node) -> None:
        """Keep a node, from which a sequence continues."""
        node.pins += 1

    def unpin(self, node: Node) -> None:
        node.pins -= 1
        self._drop_useless(node)

    def hold(self, node: Node) -> list[int]:
        """Protect a node and its blocks from eviction. Returns the blocks, for `let_go`."""
        self.pin(node)
        for pool, block in zip(self.pools, node.blocks, strict=True):
            if block != NO_BLOCK:
                pool.share(block)
        return list(node.blocks)

    def let_go(self, node: Node, blocks: Blocks) -> None:
        self.release(blocks)
        self.unpin(node)

    def release(self, blocks: Blocks) -> None:
        for pool, block in zip(self.pools, blocks, strict=True):
            if block != NO_BLOCK:
                pool.release(block)

    def prune(self, node: Node) -> None:
        """Remove a node and all after it, as far as no sequence continues from there."""
        for below in [*self.nodes(node)][::-1]:
            if not below.children and not below.pins:
                self._drop(below)

    def clear(self) -> None:
        self.prune(self.root)

    def holds(self, node: Node) -> bool:
        """Whether the node is still in the tree."""
        return node.parent is not None and node.parent.children.get(node.ids) is node

    def nodes(self, start: Node | None = None) -> Iterator[Node]:
        """All nodes from `start` on, itself included, without the root; parents before children."""
        stack = [start or self.root]
        while stack:
            node = stack.pop()
            if node.parent is not None:
                yield node
            stack.extend(node.children.values())

    def _fill(self, node: Node, index: int, block: int) -> None:
        if node.blocks[index] == NO_BLOCK:
            node.blocks[index] = self.pools[index].share(block)
            self.queues[index].use(node)

    def _strip(self, node: Node, index: int) -> None:
        self.queues[index].remove(node)
        self.pools[index].release(node.blocks[index])
        node.blocks[index] = NO_BLOCK

    def _drop(self, node: Node) -> None:
        """Remove a leaf."""
        assert node.parent is not None
        assert not node.children
        for index, block in enumerate(node.blocks):
            if block != NO_BLOCK:
                self._strip(node, index)
        node.parent.remove(node)
        self.n_tokens -= len(node.ids)

    def _drop_useless(self, node: Node) -> None:
        """Remove a leaf from which no sequence can continue, then its parent if it is now such a leaf."""
        while node.parent is not None and not node.children and not node.pins and self._useless(node):
            parent = node.parent
            self._remember(node)
            self._drop(node)
            node = parent

    def _useless(self, node: Node) -> bool:
        lost = [required for block, required in zip(node.blocks, self.required, strict=True) if block == NO_BLOCK]
        return any(lost) or len(lost) == len(node.blocks)

    def _remember(self, node: Node) -> None:
        self.evicted[node.key] = None
        if len(self.evicted) > REMEMBERED:
            self.evicted.popitem(last=False)


def key_of(parent: Node, ids: tuple[int, ...]) -> int:
    return hash((parent.key, ids))
