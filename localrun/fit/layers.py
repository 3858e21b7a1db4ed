"""What a layer keeps of a sequence, exactly, for every kind of layer there is: those we run and those we only size.

Bytes are of whole blocks: 64 tokens, or as many as one compressed entry stands for. Torch-free.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from localrun.cache.groups import BLOCK_TOKENS
from localrun.model.config import LayerSpec
from localrun.ops.kv import SCALE_GROUP, SIDE_BYTES, KVCodec


class LayerCache(Protocol):
    """One layer's share of the cache."""

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        """Bytes that one sequence of `n_tokens` holds in this layer."""
        ...


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values of every KV head: all heads (MHA), groups of them (GQA) or one (MQA).

    `value_dim` 0: values are the keys. With a `window` a query sees that many tokens, and as many are kept; with
    `sink` the first block stays too.
    """

    n_kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    sink: bool = False

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        held = window_blocks(self.window, n_tokens, self.sink) * BLOCK_TOKENS
        return held * self.n_kv_heads * (_coded(self.key_dim, codec.k_bits) + _coded(self.value_dim, codec.v_bits))


@dataclass(frozen=True, slots=True)
class Latent:
    """DeepSeek's MLA: one vector a token for all heads, its rotary part, and the indexer's key where there is one.

    Rotating does nothing for latents and 4 bits break them, so they stay 16 bits wide whatever the codec.
    """

    rank: int
    rope_dims: int
    indexer_dims: int = 0

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return _blocks(n_tokens) * BLOCK_TOKENS * 2 * (self.rank + self.rope_dims + self.indexer_dims)


@dataclass(frozen=True, slots=True)
class Recurrent:
    """Mamba and linear attention: a state of fixed size, f32, however long the sequence is."""

    state_size: int  # elements

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return 4 * self.state_size

    @classmethod
    def delta_net(cls, n_key_heads: int, n_value_heads: int, key_dim: int, value_dim: int, taps: int) -> "Recurrent":
        """Gated DeltaNet: the inputs of a short convolution of `taps`, and one matrix a value head."""
        channels = 2 * n_key_heads * key_dim + n_value_heads * value_dim
        return cls((taps - 1) * channels + n_value_heads * key_dim * value_dim)

    @classmethod
    def mamba(cls, inner_size: int, state_size: int, taps: int, n_groups: int = 0) -> "Recurrent":
        """Mamba 1 (no groups) and 2: the inputs of the convolution, and `state_size` numbers a channel."""
        return cls((taps - 1) * (inner_size + 2 * n_groups * state_size) + inner_size * state_size)


@dataclass(frozen=True, slots=True)
class Compressed:
    """DeepSeek V4: one entry for every `ratio` tokens, and an indexer key beside it. CSA: ratio 4, HCA: ratio 128.

    The window of recent tokens such a layer also has is an Attention of its own.
    """

    ratio: int
    entry_dims: int
    indexer_dims: int = 0

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        tokens = max(BLOCK_TOKENS, self.ratio)
        entries = -(-n_tokens // tokens) * (tokens // self.ratio)
        return entries * 2 * (self.entry_dims + self.indexer_dims)


@dataclass(frozen=True, slots=True)
class Shared:
    """A layer that reads the cache of an earlier one."""

    def nbytes(self, n_tokens: int, codec: KVCodec) -> int:
        return 0


def cache_of(spec: LayerSpec) -> Attention:
    """What a layer that we run keeps."""
    window = spec.window if spec.sink_window is None else spec.sink_window
    return Attention(spec.n_kv_heads, spec.head_dim, spec.head_dim, window, sink=spec.sink_window is not None)


def cache_bytes(layers: Iterable[LayerCache], n_tokens: int, codec: KVCodec) -> int:
    """Bytes that one sequence of `n_tokens` holds in all of these layers."""
    return sum(layer.nbytes(n_tokens, codec) for layer in layers)


def window_blocks(window: int | None, n_tokens: int, sink: bool = False) -> int:
    """Blocks of one sequence of `n_tokens`: all, or those that a query at its end still sees."""
    if window is None:
        return _blocks(n_tokens)
    return min(_blocks(n_tokens), _blocks(window) + 1 + sink)


def _blocks(n_tokens: int) -> int:
    return -(-n_tokens // BLOCK_TOKENS)


def _coded(n_dims: int, bits: int) -> int:
    """Bytes of one vector and its scales."""
    return bits * n_dims // 8 + -(-n_dims // SCALE_GROUP) * SIDE_BYTES[bits]
