"""Layer groups: layers whose blocks are allocated, shared and freed together. Ints only, no tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from localrun.model.config import LayerSpec
from localrun.ops.kv import KVCodec

BLOCK_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one window and one K/V shape. A block of a group holds 64 tokens of all its layers."""

    layers: tuple[int, ...]
    window: int | None
    n_kv_heads: int
    head_dim: int
    block_tokens: int = BLOCK_TOKENS

    def bytes_per_token(self, codec: KVCodec) -> int:
        return len(self.layers) * self.n_kv_heads * codec.bytes_per_token(self.head_dim)

    def n_blocks(self, n_tokens: int) -> int:
        """Blocks that `n_tokens` tokens of one sequence occupy."""
        return -(-n_tokens // self.block_tokens)

    def bytes(self, n_tokens: int, codec: KVCodec) -> int:
        """Bytes that `n_tokens` tokens of one sequence occupy, in whole blocks."""
        return self.n_blocks(n_tokens) * self.block_tokens * self.bytes_per_token(codec)

    def reusable(self, n_tokens: int) -> int:
        """How many of the first `n_tokens` cached tokens a new sequence may take over: all, as no block is dropped."""
        return n_tokens


def group_layers(layers: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """Put layers that share window and K/V shape together, in order of first appearance."""
    members: dict[tuple[int | None, int, int], list[int]] = {}
    for index, spec in enumerate(layers):
        members.setdefault((spec.window, spec.n_kv_heads, spec.head_dim), []).append(index)
    return tuple(Group(tuple(indices), *key) for key, indices in members.items())
