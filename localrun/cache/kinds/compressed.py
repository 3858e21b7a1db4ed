"""DeepSeek V4: one entry for several tokens, with an indexer key. CSA: 4 tokens, HCA: 128. Torch-free."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.interface import PoolRules
from localrun.cache.kinds.ring_blocks import RingBlocks
from localrun.cache.kinds.token_blocks import TokenBlocks
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec


@dataclass(frozen=True, slots=True)
class Compressed:
    """An entry of `entry_dims` numbers for `ratio` tokens.

    The tokens of the last, open entry are in the ring, one by one. The window of recent tokens that such a layer also
    has is an AttentionCache of its own.
    """

    ratio: int
    entry_dims: int
    indexer_dims: int = 0
    window = None
    sink = False
    is_bounded = False

    @property
    def title(self) -> str:
        return f"an entry for {self.ratio} tokens"

    @property
    def entry_tokens(self) -> int:
        return self.ratio

    def codec(self, wanted: KVCodec) -> KVCodec:
        return KV_CODECS["f16"]

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        return block_tokens // self.ratio * 2 * (self.entry_dims + self.indexer_dims)

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        tokens = max(BLOCK_TOKENS, self.ratio)
        return -(-n_tokens // tokens) * self.block_bytes(codec, tokens)

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """Blocks for all entries, and one more for a copy of a shared block."""
        return parallel * -(-ctx // max(BLOCK_TOKENS, self.ratio)) + 1

    def n_left(self, ctx: int) -> int:
        return -(-ctx // max(BLOCK_TOKENS, self.ratio))

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        return CacheLayer(group, index, n_heads, 1, self.entry_dims + self.indexer_dims, value_dim=self.entry_dims)

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        assert ring is not None
        coded = TokenBlocks(pool, block_tokens)
        return [coded, RingBlocks(ring, coded, reads_first=False)]
