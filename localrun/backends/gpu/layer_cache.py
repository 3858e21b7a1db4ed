"""A layer's keys and values as the kernels of attention are given them, in any codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Argument
    from localrun.backends.reference.pool import BlockStore
    from localrun.ops.cache_layer import CacheLayer
    from localrun.ops.kv import KVCodec


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Where a layer's keys and values are."""

    place: CacheLayer
    codec: KVCodec
    store: BlockStore
    ring: BlockStore | None  # 16-bit blocks, where the codec is quantised

    @property
    def planes(self) -> tuple[Argument, ...]:
        """Codes and scales of keys and of values, then both in 16 bits."""
        keys, values = self.store.keys, self.store.values
        exact = (None, None) if self.ring is None else (self.ring.keys.codes, self.ring.values.codes)
        scales = [None if side.bits >= 16 else side.scales for side in (keys, values)]
        return keys.codes, scales[0], values.codes, scales[1], *exact

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Heads, KV heads, layers of a block, and the number of this one."""
        place = self.place
        return place.n_heads, place.n_kv_heads, self.store.keys.codes.shape[1], place.index


def codec_defines(codec: KVCodec) -> dict[str, int]:
    """Macros that say how keys and values are stored."""
    return {"KEY_BITS": codec.k_bits, "VALUE_BITS": codec.v_bits, "ROTATES": int(codec.rotates)}
