"""Multi-head latent attention of DeepSeek: one vector per token for all heads; values are part of it. Torch-free."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.interface import PoolRules
from localrun.cache.kinds.token_blocks import TokenBlocks
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec


@dataclass(frozen=True, slots=True)
class Latent:
    """A latent of `rank` numbers, which is also the value, its rotary part, and an indexer's key where there is one.

    Rotation does nothing for latents and 4 bits break them, so they stay 16 bits wide in every codec.
    """

    rank: int
    rope_dims: int
    indexer_dims: int = 0
    title = "latents"
    window = None
    sink = False
    is_bounded = False
    entry_tokens = 1

    def codec(self, wanted: KVCodec) -> KVCodec:
        return wanted if wanted.native else KV_CODECS["f16"]

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        return block_tokens * self.codec(codec).k_bits // 8 * (self.rank + self.rope_dims + self.indexer_dims)

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return -(-n_tokens // BLOCK_TOKENS) * self.block_bytes(codec, BLOCK_TOKENS)

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        """Blocks for all tokens, and one more for a copy of a shared block."""
        return parallel * -(-ctx // BLOCK_TOKENS) + 1

    def n_left(self, ctx: int) -> int:
        return -(-ctx // BLOCK_TOKENS)

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        return CacheLayer(group, index, n_heads, 1, self.rank + self.rope_dims + self.indexer_dims, value_dim=self.rank)

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        return [TokenBlocks(pool, block_tokens)]
