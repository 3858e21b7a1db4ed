"""The prefix tree: token ids to the blocks that hold their keys and values. Ints only, no tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from localrun.cache.blocks import BlockPool
from localrun.cache.groups import BLOCK_TOKENS

Blocks = tuple[int, ...]  # one block a layer group


@dataclass(eq=False, slots=True)
class Node:
    """Up to 64 tokens after its parent and the blocks that hold them. Only full nodes have children."""

    ids: tuple[int, ...]
    blocks: Blocks
    parent: "Node | None"
    last_used: int
    children: list["Node"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Match:
    """What the tree holds of a sequence: `n_tokens` of it, in `blocks` (the last may be used in part)."""

    n_tokens: int
    blocks: tuple[Blocks, ...]


class PrefixTree:
    """Every prefix computed so far, over all chats and branches; the least recently used leaves go first.

    A hit is decided by comparing ids. The tree holds one reference on each of its blocks, in the pool of each group.
    """

    def __init__(self, pools: Sequence[BlockPool]) -> None:
        self.pools = tuple(pools)
        self.root = Node((), (), None, 0)
        self.clock = 0

    def match(self, token_ids: Sequence[int]) -> Match:
        """The longest stored prefix of `token_ids`. The blocks are not yet held for the caller: share them at once."""
        self.clock += 1
        node, n_tokens = self.root, 0
        blocks: list[Blocks] = []
        while True:
            best, n_best = self._best_child(node, token_ids, n_tokens)
            if best is None:
                return Match(n_tokens, tuple(blocks))
            best.last_used = self.clock
            n_tokens += n_best
            blocks.append(best.blocks)
            if n_best < BLOCK_TOKENS:
                return Match(n_tokens, tuple(blocks))
            node = best

    def insert(self, token_ids: Sequence[int], blocks: Sequence[Blocks]) -> None:
        """Keep a computed sequence: `blocks[i]` hold its tokens 64·i … 64·i+63. Known parts are not kept twice."""
        self.clock += 1
        node = self.root
        for index, held in enumerate(blocks):
            ids = tuple(token_ids[index * BLOCK_TOKENS : (index + 1) * BLOCK_TOKENS])
            if not ids:
                return
            node = self._child_for(node, ids, held)
            node.last_used = self.clock

    def evict_one(self) -> bool:
        """Drop the least recently used leaf; False when the tree is empty."""
        leaves = [node for node in self.nodes() if not node.children]
        if not leaves:
            return False
        self._drop(min(leaves, key=lambda node: node.last_used))
        return True

    def clear(self) -> None:
        while self.evict_one():
            pass

    def nodes(self) -> Iterator[Node]:
        """All nodes but the root, parents before children."""
        stack = list(self.root.children)
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children)

    def _best_child(self, node: Node, token_ids: Sequence[int], start: int) -> tuple[Node | None, int]:
        wanted = token_ids[start : start + BLOCK_TOKENS]
        lengths = [(common_prefix(child.ids, wanted), child) for child in node.children]
        n_best, best = max(lengths, key=lambda pair: pair[0], default=(0, None))
        return (best, n_best) if n_best else (None, 0)

    def _child_for(self, node: Node, ids: tuple[int, ...], held: Blocks) -> Node:
        """The child of `node` that covers `ids`: an equal or longer one, a shorter one grown, or a new one."""
        for child in node.children:
            common = common_prefix(child.ids, ids)
            if common == len(ids):
                return child
            if common == len(child.ids):  # the sequence went on from here: its block holds more
                self._replace(child, ids, held)
                return child
        child = Node(ids, self._share(held), node, self.clock)
        node.children.append(child)
        return child

    def _replace(self, node: Node, ids: tuple[int, ...], held: Blocks) -> None:
        shared = self._share(held)
        self._release(node.blocks)
        node.ids, node.blocks = ids, shared

    def _drop(self, node: Node) -> None:
        assert node.parent is not None
        node.parent.children.remove(node)
        self._release(node.blocks)

    def _share(self, blocks: Blocks) -> Blocks:
        return tuple(pool.share(block) for pool, block in zip(self.pools, blocks, strict=True))

    def _release(self, blocks: Blocks) -> None:
        for pool, block in zip(self.pools, blocks, strict=True):
            pool.release(block)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading ids two sequences share."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)
