"""Exact bytes of a model's KV cache, by layer and codec. Torch-free."""

from collections.abc import Iterable

from localrun.cache.kinds.interface import CacheKind
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec


def layer_codecs(config: ModelConfig, codec: KVCodec) -> tuple[KVCodec, ...]:
    """The codec of every layer for the user's `codec`."""
    return tuple(spec.cache.codec(codec) for spec in config.layers)


def cache_bytes(layers: Iterable[CacheKind], n_tokens: int, codec: KVCodec) -> int:
    """Bytes that one sequence of `n_tokens` holds in all of these layers."""
    return sum(kind.nbytes(n_tokens, kind.codec(codec)) for kind in layers)


def kv_bytes(config: ModelConfig, codec: KVCodec, n_tokens: int) -> int:
    """Bytes of the blocks that `n_tokens` tokens of one sequence hold."""
    return cache_bytes((spec.cache for spec in config.layers), n_tokens, codec)


def kv_bytes_per_token(config: ModelConfig, codec: KVCodec) -> int:
    """Bytes per token while every layer sees it. Recurrent states are not counted: their size is constant."""
    return (kv_bytes(config, codec, BLOCK_TOKENS) - state_bytes(config)) // BLOCK_TOKENS


def state_bytes(config: ModelConfig) -> int:
    """Bytes of one state of all recurrent layers, whatever the length of the text."""
    return kv_bytes(config, KV_CODECS["f32"], 0)


def kv_bytes_by_codec(config: ModelConfig) -> dict[str, int]:
    """Bytes per token for every codec that a user can choose."""
    return {name: kv_bytes_per_token(config, codec) for name, codec in KV_CODECS.items() if name != "f32"}
