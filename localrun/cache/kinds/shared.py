"""Layers that store nothing: they read the cache of an earlier layer (Gemma 3n and 4), or need none. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.interface import PoolRules
from localrun.ops.kv import KVCodec

if TYPE_CHECKING:
    from localrun.ops.cache_layer import CacheLayer


@dataclass(frozen=True, slots=True)
class Shared:
    """A layer in no group."""

    title = ""
    window = None
    sink = False
    is_bounded = True
    entry_tokens = 1

    def codec(self, wanted: KVCodec) -> KVCodec:
        return wanted

    def block_bytes(self, codec: KVCodec, block_tokens: int) -> int:
        return 0

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return 0

    def n_blocks(self, ctx: int, parallel: int, chunk: int) -> int:
        return 0

    def n_left(self, ctx: int) -> int:
        return 0

    def layer(self, group: int, index: int, n_heads: int) -> CacheLayer:
        raise AssertionError("a layer that keeps nothing has no place in a pool")

    def rules(self, block_tokens: int, pool: int, ring: int | None) -> list[PoolRules]:
        return []
