"""Layer groups: layers whose blocks are allocated, shared and freed together. Ints only, no tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec

__all__ = ["BLOCK_TOKENS", "Group", "ring_pools"]


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one window, one K/V shape and one codec. A block of a group holds 64 tokens of all its layers.

    A query sees `window` tokens, itself included (None: all); with `sinks` also block 0, as under a user's window.
    """

    layers: tuple[int, ...]
    window: int | None
    n_kv_heads: int
    head_dim: int
    sinks: bool = False
    codec: KVCodec = KV_CODECS["f16"]
    block_tokens: int = BLOCK_TOKENS

    @property
    def replayable(self) -> bool:
        """Lost blocks can be computed again from a bounded number of tokens: the window is the model's own."""
        return self.window is not None and not self.sinks

    def first_block(self, position: int) -> int:
        """The oldest logical block that a query at `position` or later sees, block 0 of `sinks` left aside."""
        return 0 if self.window is None else max(0, position - self.window + 1) // self.block_tokens

    def bytes_per_token(self, codec: KVCodec | None = None) -> int:
        return len(self.layers) * self.n_kv_heads * (codec or self.codec).bytes_per_token(self.head_dim)

    def n_blocks(self, n_tokens: int) -> int:
        """Blocks that `n_tokens` tokens of one sequence fill."""
        return -(-n_tokens // self.block_tokens)

    def bytes(self, n_tokens: int, codec: KVCodec | None = None) -> int:
        """Bytes that `n_tokens` tokens of one sequence fill, in whole blocks."""
        return self.n_blocks(n_tokens) * self.block_tokens * self.bytes_per_token(codec)


def ring_pools(groups: Sequence[Group]) -> list[int | None]:
    """The number of each group's pool of 16-bit blocks, counted after those of coded ones; None where it has none."""
    numbers = iter(range(len(groups), 2 * len(groups)))
    return [None if group.codec.native else next(numbers) for group in groups]
