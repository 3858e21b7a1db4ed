"""A model of some size in some use: its memory, and the work of one token. Torch-free."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

from localrun.base.dataclass import dataclass
from localrun.base.events import Work
from localrun.diagnose.predict.sizes import SIZES, Size
from localrun.fit.bytes import kv_bytes, kv_bytes_per_token
from localrun.fit.precisions import bits_of
from localrun.fit.shape import make_shape
from localrun.fit.weights import held_share
from localrun.formats.requantize import PRECISIONS as OWN_TYPES
from localrun.model.config import LayerSpec, ModelConfig
from localrun.ops.kv import KV_CODECS, KVCodec

Heads = Literal["MHA", "GQA", "MQA"]

PRECISIONS = ("FP32", "FP16", "INT8", "INT4", "INT2")
HEADS: Sequence[Heads] = get_args(Heads)
USUAL_GROUPS = 8  # KV heads where a model without groups is asked for some
LONGEST_ANSWER = 256  # tokens, of the turn that is looked at
BYTES_CODED = 8.5  # bits a weight up to which whole numbers are multiplied


@dataclass(frozen=True)
class WhatIf:
    """`weights` is a precision, `heads` None as the model has them; each of `chats` has `ctx` tokens in its cache.

    Without `cached` all tokens are computed again for each new one.
    """

    size: Size = SIZES["8B"]
    weights: str = "INT4"
    heads: Heads | None = None
    codec: str = "f16"
    ctx: int = 8192
    window: int | None = None
    chats: int = 1
    cached: bool = True

    @cached_property
    def config(self) -> ModelConfig:
        """The config with these heads and this window."""
        config = with_heads(self.size.shape.config, self.heads)
        return config.for_window(self.window) if self.window else config

    @property
    def kv_codec(self) -> KVCodec:
        return KV_CODECS[self.codec]

    @cached_property
    def n_params(self) -> int:
        return self.size.shape.n_params + self._more_params

    @property
    def _more_params(self) -> int:
        """Additional parameters of the matrices for keys and values, compared with the model as it is."""
        own, other = self.size.shape.config, self.config
        return make_shape(other, tied=True).n_params - make_shape(own, tied=True).n_params

    @cached_property
    def bits(self) -> float:
        """Bits per weight in memory with scales: more than in a file where this machine unpacks them."""
        return bits_of(self.weights) * held_share(OWN_TYPES.get(self.weights.lower(), self.weights))

    @cached_property
    def weights_bytes(self) -> int:
        if self.size.loaded is not None and self.weights == self.size.loaded[0]:
            return self.size.loaded[1] + int(self._more_params * self.bits / 8)
        return int(self.n_params * self.bits / 8)

    @cached_property
    def work(self) -> Work:
        """Cost of computing a token without reading its cache, counted as a load does."""
        active = self.size.shape.active_params + self._more_params
        is_coded = self.bits <= BYTES_CODED
        seeing = [spec for spec in self.config.layers if spec.has_attention and spec.window is None]
        return Work(
            weight_bytes=self.weights_bytes * active // self.n_params,
            macs=active if is_coded else 0,
            wide_macs=0 if is_coded else active,
            attention_macs=2 * sum(spec.n_heads * spec.head_dim for spec in seeing),
        )

    @property
    def token_bytes(self) -> int:
        """Bytes of the cache for a token that every layer sees."""
        return kv_bytes_per_token(self.config, self.kv_codec)

    def kv_bytes(self, n_tokens: int) -> int:
        """Bytes of the keys and values of one chat of this length, cached or not."""
        return kv_bytes(self.config, self.kv_codec, n_tokens)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches of all chats."""
        return self.chats * self.kv_bytes(self.ctx) if self.cached else 0

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.cache_bytes

    @property
    def answer(self) -> int:
        """Tokens of an answer that ends with the context."""
        return min(LONGEST_ANSWER, self.ctx // 4)

    @property
    def prompt(self) -> int:
        """Tokens before that answer."""
        return self.ctx - self.answer


def heads_of(config: ModelConfig) -> Heads | None:
    """Kind of heads of a model, by the majority of its layers; None where they have latents in the place of heads."""
    if config.latents:
        return None
    kinds = [_kind(spec) for spec in config.layers if spec.has_attention]
    return max(HEADS, key=kinds.count)


def _kind(spec: LayerSpec) -> Heads:
    return "MHA" if spec.n_kv_heads == spec.n_heads else "MQA" if spec.n_kv_heads == 1 else "GQA"


def with_heads(config: ModelConfig, heads: Heads | None) -> ModelConfig:
    """The model with a KV head for every query head (MHA), one for all (MQA), or its own groups (GQA)."""
    if heads is None:
        return config
    layers = (_with_heads(spec, heads) if spec.has_attention else spec for spec in config.layers)
    return replace(config, layers=tuple(layers))


def _with_heads(spec: LayerSpec, heads: Heads) -> LayerSpec:
    """A layer with other KV heads; of latents with those that they are made into."""
    if spec.latent is not None:
        spec = replace(spec, latent=None, head_dim=spec.latent.key_dim, n_kv_heads=spec.n_heads)
    return replace(spec, n_kv_heads=_n_kv_heads(spec, heads))


def latents_formula(config: ModelConfig, codec: KVCodec) -> str:
    """Formula for the bytes of a token in layers with latents, which are alike."""
    latents = [spec.cache for spec in config.layers if spec.latent is not None]
    bits = latents[0].codec(codec).k_bits
    (size,) = {spec.head_dim for spec in config.layers if spec.latent is not None}
    return f"{len(latents)} layers · {size} numbers for all heads · {bits // 8} bytes"


def _n_kv_heads(spec: LayerSpec, heads: Heads) -> int:
    if heads == _kind(spec):
        return spec.n_kv_heads
    if heads == "GQA":
        return next(n for n in range(min(USUAL_GROUPS, spec.n_heads), 0, -1) if spec.n_heads % n == 0)
    return spec.n_heads if heads == "MHA" else 1
