"""Blocks of one sequence in the cache. Ints only, no tensors."""

from localrun.base.dataclass import dataclass
from localrun.cache.blocks import BlockTable
from localrun.cache.kinds.interface import BranchPoints, Reuse
from localrun.cache.node import Node

QUESTION_TOKENS = 256  # at the end of a prompt, where it may be edited: what is seen from there is kept, too


@dataclass(eq=False, slots=True)
class SequenceCache:
    """The blocks of one sequence, and its path in the prefix tree.

    `tables` has one row per pool: the coded blocks of every group, then the 16-bit blocks of those that have them.
    """

    tables: list[BlockTable]
    reuse: Reuse
    points: BranchPoints
    path: list[Node]  # of its full blocks, as far as they are in the tree
    private: bool = False  # nothing of it is for others
    chat: str = ""  # the kept chat it belongs to
    n_published: int = 0  # full blocks that need not be offered to the tree any more
    n_shared: int = 0  # tokens that were in the tree before it

    @property
    def n_cached(self) -> int:
        """Tokens that need not be computed."""
        return self.reuse.start

    @property
    def n_replayed(self) -> int:
        """Tokens that are computed again although full layers have them."""
        return self.reuse.n_tokens - self.reuse.start


def branch_points(reuse: Reuse, n_prompt: int) -> BranchPoints:
    """Branch points of a sequence whose answer begins after `n_prompt` tokens."""
    known, answer = reuse.n_tokens, n_prompt - 1
    return BranchPoints(known, max(known, answer - QUESTION_TOKENS), answer)
