"""Cache layers of models that cannot run yet, from their metadata. Torch-free.

Sizes only: latents with keys of an indexer (DeepSeek V3.2), recurrent states beside attention (Kimi Linear, Mamba),
compressed entries (DeepSeek V4), windows by layer, and layers that read the cache of another.
"""

from collections.abc import Mapping
from typing import Any

from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.kinds.compressed import Compressed
from localrun.cache.kinds.interface import CacheKind
from localrun.cache.kinds.latent import Latent
from localrun.cache.kinds.recurrent import Recurrent
from localrun.cache.kinds.shared import Shared
from localrun.model.config import ModelConfig

# our name: after "<arch>." in a GGUF, in a config.json
_KEYS = {
    "latent_rank": ("attention.kv_lora_rank", "kv_lora_rank"),
    "latent_rope": ("rope.dimension_count", "qk_rope_head_dim"),
    "indexer_dims": ("attention.indexer.key_length", "index_head_dim"),
    "ratios": ("attention.compress_ratios", "compress_ratios"),
    "window": ("attention.sliding_window", "sliding_window"),
    "pattern": ("attention.sliding_window_pattern", "layer_types"),
    "window_key_dim": ("attention.key_length_swa", "head_dim"),
    "key_dim": ("attention.key_length", "global_head_dim"),
    "n_shared": ("attention.shared_kv_layers", "num_kv_shared_layers"),
    "full_every": ("full_attention_interval", "full_attention_interval"),
    "taps": ("ssm.conv_kernel", "linear_conv_kernel_dim"),
    "n_key_heads": ("ssm.group_count", "linear_num_key_heads"),
    "n_value_heads": ("ssm.time_step_rank", "linear_num_value_heads"),
    "state_key_dim": ("ssm.state_size", "linear_key_head_dim"),
    "inner_size": ("ssm.inner_size", ""),
    "state_value_dim": ("", "linear_value_head_dim"),
}
_MOST = 1 << 20  # of any number here


def unsupported_layers(values: Mapping[str, Any], config: ModelConfig) -> tuple[CacheKind, ...]:
    """One cache kind per layer; empty where the metadata has plain attention only.

    `config` has the shape known so far.
    """
    text = values.get("text_config")
    read = _Reader({**values, **text} if isinstance(text, dict) else values)
    layer, n_layers = config.layers[0], config.n_layers
    window = read.number("window")
    if ratios := read.numbers("ratios"):
        return _compressed(ratios[:n_layers], read.number("key_dim") or layer.head_dim, read, window)
    if rank := read.number("latent_rank"):
        one = Latent(rank, read.number("latent_rope"), read.number("indexer_dims"))
        return (one,) * n_layers
    plain = AttentionCache(layer.n_kv_heads, layer.head_dim, layer.head_dim)
    if taps := read.number("taps"):
        return _hybrid(read, taps, plain, n_layers)
    if not window:
        return ()
    windowed = AttentionCache(layer.n_kv_heads, *(read.number("window_key_dim") or layer.head_dim,) * 2, window)
    kinds = [windowed if sees_less else plain for sees_less in read.windowed(n_layers)]
    n_shared = min(read.number("n_shared"), n_layers - 1)
    return (*kinds[: n_layers - n_shared], *(Shared(),) * n_shared)


def _compressed(ratios: list[int], dims: int, read: "_Reader", window: int) -> tuple[CacheKind, ...]:
    """Layers of DeepSeek V4: each has a window; the indexer belongs to the finely compressed ones."""
    found: list[CacheKind] = []
    for ratio in ratios:
        found.append(AttentionCache(1, dims, 0, window or None))
        if ratio:
            found.append(Compressed(ratio, dims, read.number("indexer_dims") if ratio < 64 else 0))
    return tuple(found)


def _hybrid(read: "_Reader", taps: int, plain: AttentionCache, n_layers: int) -> tuple[CacheKind, ...]:
    """Recurrent layers, with attention in every n-th layer (none in Mamba)."""
    keys, values, key_dim = read.number("n_key_heads"), read.number("n_value_heads"), read.number("state_key_dim")
    inner, every = read.number("inner_size"), read.number("full_every")
    state = Recurrent.mamba(inner, key_dim, taps)
    if every:
        value_dim = read.number("state_value_dim") or inner // max(values, 1)
        state = Recurrent.delta_net(keys, values, key_dim, value_dim, taps)
    return tuple(plain if every and (index + 1) % every == 0 else state for index in range(n_layers))


class _Reader:
    """Numbers of a file's metadata by localrun's names; missing and senseless ones are 0."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.arch = values.get("general.architecture")

    def value(self, name: str) -> Any:
        gguf, hf = _KEYS[name]
        key = f"{self.arch}.{gguf}" if self.arch and gguf else "" if self.arch else hf
        return self.values.get(key) if key else None

    def number(self, name: str) -> int:
        value = self.value(name)
        return value if type(value) is int and 0 < value <= _MOST else 0

    def numbers(self, name: str) -> list[int]:
        value = self.value(name)
        good = isinstance(value, list) and all(type(one) is int and 0 <= one <= _MOST for one in value)
        return value if good else []

    def windowed(self, n_layers: int) -> list[bool]:
        """Whether each layer has the window."""
        pattern = self.value("pattern")
        if isinstance(pattern, list) and len(pattern) == n_layers:
            return [one is True or one in (1, "sliding_attention") for one in pattern]
        every = pattern if type(pattern) is int else 0
        return [every > 1 and (index + 1) % every != 0 for index in range(n_layers)]
