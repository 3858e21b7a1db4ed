"""Eviction order of the prefix tree's blocks in one pool. Ints only, no tensors."""

from collections import OrderedDict

from localrun.cache.blocks import NO_BLOCK, BlockPool
from localrun.cache.node import Node

Tail = tuple[Node, ...]


class EvictionQueue:
    """Least recently used blocks go first, blocks in tails last.

    A tail is a run of nodes that a text may continue from and that is useful only whole: all that a window sees. When
    nothing else is left, the least recently used tail gives up its blocks.
    """

    def __init__(self, pool: BlockPool, index: int) -> None:
        self.pool, self.index = pool, index
        self.order: OrderedDict[Node, None] = OrderedDict()  # in no tail
        self.tails: OrderedDict[Tail, None] = OrderedDict()
        self.held: dict[Node, dict[Tail, None]] = {}  # by which tails

    def use(self, node: Node) -> None:
        """Note that the node's block was stored or read."""
        if node not in self.held:
            self.order[node] = None
            self.order.move_to_end(node)

    def remove(self, node: Node) -> None:
        """Note that the node's block is gone."""
        for tail in list(self.held.get(node, ())):
            self._let_go(tail)
        del self.order[node]

    def keep(self, tail: Tail) -> None:
        """Hold a whole tail, or note its use. A tail that this one extends by one node is released."""
        if not tail or any(node.blocks[self.index] == NO_BLOCK for node in tail):
            return
        if tail not in self.tails:
            for node in tail:
                self.held.setdefault(node, {})[tail] = None
                self.order.pop(node, None)
        self.tails[tail] = None
        self.tails.move_to_end(tail)
        if tail[:-1] in self.tails:
            self._let_go(tail[:-1])

    def victim(self) -> Node | None:
        """The next node to lose its block, among those whose block has no other reference."""
        for _ in range(len(self.order)):
            node = next(iter(self.order))
            if self._free(node):
                return node
            self.order.move_to_end(node)  # a sequence reads it: it is used now, and need not be looked at again
        while self.tails:
            for node in self._let_go(next(iter(self.tails))):
                if self._free(node):
                    return node
        return None

    def _free(self, node: Node) -> bool:
        return self.pool.references[node.blocks[self.index]] == 1

    def _let_go(self, tail: Tail) -> list[Node]:
        """Release a tail; returns the nodes that are in no tail now."""
        del self.tails[tail]
        left = []
        for node in tail:
            del self.held[node][tail]
            if not self.held[node]:
                del self.held[node]
                self.order[node] = None
                left.append(node)
        return left
