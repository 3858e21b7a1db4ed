"""Exact bytes of the KV cache of a model that we run, by layer and codec. Torch-free."""

from localrun.cache.groups import BLOCK_TOKENS
from localrun.fit.layers import cache_of
from localrun.model.config import ModelConfig
from localrun.ops.kv import KV_CODECS, KVCodec

KEEP_F16_WINDOW = 1024  # tokens; layers that see no more than this stay f16: they are small


def layer_codecs(config: ModelConfig, codec: KVCodec) -> tuple[KVCodec, ...]:
    """The codec of every layer: `codec`, but f16 in those with a small window of their own beside a quantised one."""
    f16 = KV_CODECS["f16"]
    return tuple(
        f16 if not codec.native and spec.window is not None and spec.window <= KEEP_F16_WINDOW else codec
        for spec in config.layers
    )


def kv_bytes(config: ModelConfig, codec: KVCodec, n_tokens: int) -> int:
    """Bytes of the blocks that `n_tokens` tokens of one sequence hold."""
    codecs = layer_codecs(config, codec)
    return sum(cache_of(spec).nbytes(n_tokens, own) for spec, own in zip(config.layers, codecs, strict=True))


def kv_bytes_per_token(config: ModelConfig, codec: KVCodec) -> int:
    """Bytes that a token takes while every layer sees it."""
    return kv_bytes(config, codec, BLOCK_TOKENS) // BLOCK_TOKENS


def kv_bytes_by_codec(config: ModelConfig) -> dict[str, int]:
    """Bytes a token for every codec a user may hear of."""
    return {name: kv_bytes_per_token(config, codec) for name, codec in KV_CODECS.items() if name != "f32"}
