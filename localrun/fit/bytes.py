"""Exact bytes of the KV cache of a model that we run, by layer and codec. Torch-free."""

from collections.abc import Iterable

from localrun.cache.kinds.interface import CacheKind
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec


def layer_codecs(config: ModelConfig, codec: KVCodec) -> tuple[KVCodec, ...]:
    """The codec of every layer where a user wants `codec`."""
    return tuple(spec.cache.codec(codec) for spec in config.layers)


def cache_bytes(layers: Iterable[CacheKind], n_tokens: int, codec: KVCodec) -> int:
    """Bytes that one sequence of `n_tokens` holds in all of these layers."""
    return sum(kind.nbytes(n_tokens, kind.codec(codec)) for kind in layers)


def kv_bytes(config: ModelConfig, codec: KVCodec, n_tokens: int) -> int:
    """Bytes of the blocks that `n_tokens` tokens of one sequence hold."""
    return cache_bytes((spec.cache for spec in config.layers), n_tokens, codec)


def kv_bytes_per_token(config: ModelConfig, codec: KVCodec) -> int:
    """Bytes that a token takes while every layer sees it; a state takes its own however long the text is."""
    return (kv_bytes(config, codec, BLOCK_TOKENS) - state_bytes(config)) // BLOCK_TOKENS


def state_bytes(config: ModelConfig) -> int:
    """Bytes of one state of all recurrent layers, before the first token as after the last."""
    return kv_bytes(config, KV_CODECS["f32"], 0)


def kv_bytes_by_codec(config: ModelConfig) -> dict[str, int]:
    """Bytes a token for every codec a user may hear of."""
    return {name: kv_bytes_per_token(config, codec) for name, codec in KV_CODECS.items() if name != "f32"}
