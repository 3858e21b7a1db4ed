"""Exact bytes of the KV cache, by layer and codec. Torch-free."""

from localrun.cache.groups import group_layers
from localrun.model.config import ModelConfig
from localrun.ops.kv import KV_CODECS, KVCodec


def kv_bytes_per_token(config: ModelConfig, codec: KVCodec) -> int:
    """Bytes that one token of context takes over all layers that see it."""
    return sum(group.bytes_per_token(codec) for group in group_layers(config.layers))


def kv_bytes(config: ModelConfig, codec: KVCodec, n_tokens: int) -> int:
    """Bytes of the blocks that `n_tokens` tokens of one sequence occupy."""
    return sum(group.bytes(n_tokens, codec) for group in group_layers(config.layers))


def kv_bytes_by_codec(config: ModelConfig) -> dict[str, int]:
    """Bytes a token for every codec a user may hear of."""
    return {name: kv_bytes_per_token(config, codec) for name, codec in KV_CODECS.items() if name != "f32"}
