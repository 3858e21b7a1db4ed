"""A node of the prefix tree. Ints only, no tensors."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field
from itertools import islice

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import NO_BLOCK


@dataclass(eq=False, slots=True, weakref_slot=True)
class Node:
    """At most one block of tokens after its parent, and the blocks that hold them. Only full nodes have children."""

    ids: tuple[int, ...]
    key: int  # stands for all ids up to the end of this node
    parent: "Node | None"
    blocks: list[int]
    pins: int = 0  # sequences that go on from here
    children: dict[tuple[int, ...], "Node"] = field(default_factory=dict)  # none begins like all of another
    line: list["Node"] = field(default_factory=list)  # of the children in the order of their ids: like are neighbours
    chats: set[str] = field(default_factory=set)  # kept ones whose text goes through here; without any it stays in RAM

    def add(self, child: "Node") -> None:
        self.children[child.ids] = child
        self.line.insert(self._place(child.ids), child)

    def remove(self, child: "Node") -> None:
        del self.children[child.ids]
        del self.line[self._place(child.ids)]

    def neighbours(self, ids: tuple[int, ...]) -> "tuple[Node | None, Node | None]":
        """The children before and after these ids in order.

        If a child shares a prefix with the ids, one of the two shares the longest.
        """
        place = self._place(ids)
        return self.line[place - 1] if place else None, self.line[place] if place < len(self.line) else None

    def nearest(self, ids: tuple[int, ...]) -> "tuple[int, Node | None]":
        """The longest prefix of these ids that a child has, and the child with that prefix and the most blocks."""
        n = max(common_prefix(child.ids, ids) for child in self.neighbours(ids) if child) if self.line else 0
        best, most = None, -1
        for child in islice(self.line, self._place(ids[:n]), None) if n else ():
            held = len(child.blocks) - child.blocks.count(NO_BLOCK)
            if child.ids[:n] != ids[:n]:
                break
            if held > most:
                best, most = child, held
            if held == len(child.blocks):
                break
        return n, best

    def claim(self, chat: str) -> "list[Node]":
        """Note that the text up to here belongs to a chat. Returns the nodes that did not before, in order."""
        new, node = [], self
        while node.parent is not None and chat not in node.chats:
            node.chats.add(chat)
            new.append(node)
            node = node.parent
        return new[::-1]

    def _place(self, ids: tuple[int, ...]) -> int:
        return bisect_left(self.line, ids, key=lambda child: child.ids)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Number of leading ids that two sequences share."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)
