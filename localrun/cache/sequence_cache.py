"""What one sequence holds of the cache. Ints only, no tensors."""

from dataclasses import dataclass

from localrun.cache.blocks import BlockTable
from localrun.cache.groups import BLOCK_TOKENS
from localrun.cache.node import Node
from localrun.cache.reuse import Reuse


@dataclass(eq=False, slots=True)
class SequenceCache:
    """The blocks of one sequence, and the way it has gone in the prefix tree.

    `tables` has one row a pool: the coded blocks of every group, then the 16-bit blocks of those that have them.
    """

    tables: list[BlockTable]
    reuse: Reuse
    n_prompt: int
    path: list[Node]  # of its full blocks, as far as they are in the tree
    private: bool = False  # nothing of it is for others
    chat: str = ""  # the kept chat it belongs to
    n_published: int = 0  # full blocks that need not be offered to the tree any more
    n_shared: int = 0  # tokens that were in the tree before it

    def __post_init__(self) -> None:
        self.n_published, self.n_shared = self.reuse.start // BLOCK_TOKENS, self.reuse.n_tokens

    @property
    def n_cached(self) -> int:
        """Tokens that need not be computed."""
        return self.reuse.start

    @property
    def n_replayed(self) -> int:
        """Tokens that are computed again although full layers have them."""
        return self.reuse.n_tokens - self.reuse.start
