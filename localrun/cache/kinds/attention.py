"""Keys and values of every token: attention with all heads (MHA), groups (GQA) or one (MQA). Torch-free."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.interface import PoolRules
from localrun.cache.kinds.ring_blocks import RingBlocks
from localrun.cache.kinds.token_blocks import TokenBlocks
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, SCALE_GROUP, SIDE_BYTES, KVCodec

KEPT_TOKENS = 2048  # of windows at places that may be gone back to, beside those of running sequences: one window
MOST_KEPT = 3  # windows at most: for an answer that is generated again, an edit, another branch
KEEP_F16_WINDOW = 1024  # tokens; layers that see no more than this stay f16: they are small


@dataclass(frozen=True, slots=True)
class AttentionCache:
    """Keys and values; `value_dim` 0: the values are the keys.

    With a `window` a query sees that many tokens, and as many are stored; with `sink` the first block stays too.
    """

    n_kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    sink: bool = False
    title = ""
    entry_tokens = 1

    @property
    def is_bounded(self) -> bool:
        return self.window is not None

    def codec(self, wanted: KVCodec) -> KVCodec:
        is_small = self.window is not None and not self.sink and self.window <= KEEP_F16_WINDOW
        return KV_CODECS["f16"] if is_small and not wanted.native else wanted

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        vectors = coded_bytes(self.key_dim, codec.k_bits) + coded_bytes(self.value_dim, codec.v_bits)
        return block_tokens * self.n_kv_heads * vectors

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return window_blocks(self.window, n_tokens, self.sink) * self.block_bytes(codec, BLOCK_TOKENS)

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """All blocks, or those of a window, a chunk, and the places that a text may return to.

        One more for a copy of a shared block, and one for the first block beside a rolling window.
        """
        every = parallel * window_blocks(None, ctx)
        if self.window is None:
            return every + 1
        tail = window_blocks(self.window, ctx, self.sink)
        n_kept = 1 if self.sink else max(1, min(KEPT_TOKENS // self.window, MOST_KEPT))
        return min(every, (parallel + n_kept) * tail + chunk // BLOCK_TOKENS) + 1 + self.sink

    def n_left(self, ctx: int) -> int:
        return window_blocks(None, ctx)

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        return CacheLayer(group, index, n_heads, self.n_kv_heads, self.key_dim)

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        coded = TokenBlocks(pool, block_tokens, self.window, self.sink)
        return [coded] if ring is None else [coded, RingBlocks(ring, coded)]


def window_blocks(window: int | None, n_tokens: int, sink: bool = False) -> int:
    """Blocks of one sequence of `n_tokens`: all, or those that a query at its end still sees."""
    every = -(-n_tokens // BLOCK_TOKENS)
    return every if window is None else min(every, -(-window // BLOCK_TOKENS) + 1 + sink)


def coded_bytes(n_dims: int, bits: int) -> int:
    """Bytes of one vector and its scales."""
    return bits * n_dims // 8 + -(-n_dims // SCALE_GROUP) * SIDE_BYTES[bits]
