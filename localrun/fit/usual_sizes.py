"""Cache sizes of a model on this machine's default backend, before anything of it is loaded."""

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.registry import usual_backend
from localrun.fit.blocks import CacheShape
from localrun.fit.bytes import cache_bytes, layer_codecs
from localrun.fit.fastest import fastest_backend
from localrun.fit.plan import CacheSizes
from localrun.fit.shape import ModelShape
from localrun.model.config import ModelConfig
from localrun.model.recording import record_shapes
from localrun.model.shapes import Ranks
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import max_sequences


class UnsupportedSizes:
    """Cache sizes of a model that cannot run yet, by the kinds of its layers."""

    def __init__(self, shape: ModelShape) -> None:
        self.config, self._caches = shape.config, shape.caches

    @property
    def program_bytes(self) -> int:
        return usual_backend().program_bytes

    def holds(self, codec: KVCodec) -> bool:
        return True

    def nbytes(self, ctx: int, codec: KVCodec, parallel: int = 1) -> int:
        return parallel * cache_bytes(self._caches, ctx, codec)

    def scratch_bytes(self, ctx: int, codec: KVCodec, threads: int) -> int:
        layers = layer_codecs(self.config, codec)
        return usual_backend().scratch_bytes(record_shapes(self.config), ctx, layers, threads, max_sequences(ctx))

    def decode_cost(self) -> DecodeCost:
        return DecodeCost()


def usual_sizes(
    config: ModelConfig, adapters: tuple[Ranks, ...] = (), drafting: ModelConfig | None = None
) -> CacheSizes:
    """Cache sizes of a model on this machine's default backend; `drafting`: a program that drafts beside it."""
    backend = fastest_backend(record_shapes(config, adapters))
    return CacheShape(config, backend, adapters=adapters, drafting=drafting)
