"""Retention in the prefix tree: the blocks that a continued text would read outlast others. Ints only."""

from collections.abc import Sequence

from localrun.cache.kinds.interface import PoolRules
from localrun.cache.node import Node
from localrun.cache.prefix import PrefixTree
from localrun.cache.sequence_cache import SequenceCache


class Retention:
    """Note uses in the tree by the rules of every pool; pools from `n_groups` on hold 16-bit blocks."""

    def __init__(self, tree: PrefixTree, rules: Sequence[PoolRules], n_groups: int) -> None:
        self.tree, self.rules, self.ring_rules = tree, tuple(rules), tuple(rules[n_groups:])

    def use(self, nodes: Sequence[Node], n_tokens: int) -> None:
        """Note what a sequence of `n_tokens` tokens along these nodes reads when it continues."""
        for rules in self.rules:
            read = rules.reads(n_tokens)
            self.tree.use(nodes[read.start : read.stop], rules.pool)
            self.tree.use(nodes[:1], rules.pool)
        for rules in self.rules:
            if rules.keeps_tails:
                read = rules.reads(n_tokens)
                self.tree.keep(nodes[read.start : read.stop], rules.pool)

    def keep_tails(self, cache: SequenceCache, block: int) -> None:
        """After a new block: keep what is read at places where another text may branch off."""
        points = cache.points
        for rules in self.rules:
            for run in rules.kept(points, block):
                self.tree.keep(cache.path[run.start : run.stop], rules.pool)

    def keep_first(self, node: Node) -> None:
        """Keep block 0, which every continuation reads, where it is read in 16 bits."""
        if node.parent is self.tree.root:
            for rules in self.ring_rules:
                self.tree.keep([node], rules.pool)
