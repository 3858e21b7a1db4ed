"""Gated DeltaNet, the linear attention of Qwen3-Next and Qwen3.5: a short convolution, then the gated delta rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.cache.kinds.recurrent import Recurrent
from localrun.model.layer_weights import MixerWeights
from localrun.ops.instructions import Linear
from localrun.ops.recurrent import GatedDeltaRule, ShortConv
from localrun.ops.types import Value

if TYPE_CHECKING:
    from localrun.ops.recording import Ops


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """`tiled`: value head h reads key head h % n_key_heads, not h · n_key_heads // n_value_heads."""

    n_key_heads: int
    n_value_heads: int
    key_dim: int
    value_dim: int
    taps: int
    eps: float
    tiled: bool

    @property
    def channels(self) -> int:
        """Channels of the convolution: all queries, keys and values."""
        return 2 * self.n_key_heads * self.key_dim + self.n_value_heads * self.value_dim

    @property
    def state_size(self) -> int:
        return Recurrent.delta_net(
            self.n_key_heads, self.n_value_heads, self.key_dim, self.value_dim, self.taps
        ).state_size

    def matrices(self, hidden: int) -> Mapping[str, tuple[int, int]]:
        width = self.n_value_heads * self.value_dim
        rows = {"mixed": self.channels, "z": width, "alpha": self.n_value_heads, "beta": self.n_value_heads}
        return {name: (n_rows, hidden) for name, n_rows in rows.items()} | {"out": (hidden, width)}

    def vectors(self) -> Mapping[str, tuple[int, ...]]:
        heads = (self.n_value_heads,)
        return {"conv": (self.channels, self.taps), "decay": heads, "dt_bias": heads, "gated_norm": (self.value_dim,)}

    def mix(self, ops: Ops, a: Value, index: int, weights: MixerWeights) -> Value:
        matrices, vectors = weights.matrices, weights.vectors
        names = ("mixed", "z", "alpha", "beta")
        mixed, z, alpha, beta = ops(Linear(a, tuple(matrices[name] for name in names)))
        (qkv,) = ops(ShortConv(mixed, vectors["conv"], self.taps, index, act="silu"))
        rule = GatedDeltaRule(
            qkv,
            z,
            alpha,
            beta,
            vectors["decay"],
            vectors["dt_bias"],
            vectors["gated_norm"],
            self.eps,
            self.n_key_heads,
            self.n_value_heads,
            self.key_dim,
            self.value_dim,
            self.tiled,
            index,
            state_at=(self.taps - 1) * self.channels,
        )
        return ops(rule)[0]
