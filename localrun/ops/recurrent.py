"""Instructions of layers that keep a state of fixed size: convolutions, linear attention, state spaces.

Like those of `instructions.py`, which lists them all.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from localrun.base.dataclass import dataclass
from localrun.ops.layouts import Vector
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class ShortConv:
    """A causal convolution along every sequence, each channel by itself, then `act` -> f32 [R, channels].

    A row at p gets bias + the sum over j < taps of weight[:, j] · x at p - taps + 1 + j; before a text x is 0. The x of
    the last taps - 1 tokens are the layer's state from its number `state_at` on. Where it is `gated`, `x` has two gates
    before its own channels: the first is multiplied with what goes into the convolution, the second with the result.
    """

    name: ClassVar = "short_conv"
    n_results: ClassVar = 1
    x: Value  # [R, channels], or where it is gated [R, 3 · channels]
    weight: Vector  # [channels · taps]
    taps: int
    layer: int
    state_at: int = 0
    bias: Vector | None = None  # [channels]
    act: Literal["none", "silu"] = "none"
    gated: bool = False


@dataclass(frozen=True, slots=True)
class GatedDeltaRule:
    """Linear attention with a state S [key_dim, value_dim] a value head (Yang, Kautz and Hatamizadeh 2024), then a
    gated norm of each head -> f32 [R, n_value_heads · value_dim].

    Every token: S = exp(decay · softplus(alpha + dt_bias)) · S, then S += k ⊗ sigmoid(beta) · (v - Sᵀk), and
    o = Sᵀq / sqrt(key_dim), with q and k at length 1. The result is o / rms(o) · norm · silu(z). The states are those
    of the layer from its number `state_at` on. Value head h reads key head h · n_key_heads // n_value_heads, or where
    heads are `tiled` h % n_key_heads.
    """

    name: ClassVar = "gated_delta_rule"
    n_results: ClassVar = 1
    qkv: Value  # [R, 2 · n_key_heads · key_dim + n_value_heads · value_dim]
    z: Value  # [R, n_value_heads · value_dim]
    alpha: Value  # [R, n_value_heads]
    beta: Value  # [R, n_value_heads]
    decay: Vector  # [n_value_heads], below 0
    dt_bias: Vector  # [n_value_heads]
    norm: Vector  # [value_dim]
    eps: float
    n_key_heads: int
    n_value_heads: int
    key_dim: int
    value_dim: int
    tiled: bool
    layer: int
    state_at: int = 0


@dataclass(frozen=True, slots=True)
class SelectiveScan:
    """A state space layer with a state S [head_dim, state_dim] a head (Mamba-2: Dao and Gu 2024), then a gated norm of
    each group -> f32 [R, n_heads · head_dim].

    Every token: step = softplus(dt + dt_bias), S = exp(decay · step) · S + (step · x) ⊗ b, and y = S c + skip · x,
    where the heads of a group share b and c. The result is g / rms(g) · norm of g = y · silu(z), a group at a time.
    The states are those of the layer from its number `state_at` on.
    """

    name: ClassVar = "selective_scan"
    n_results: ClassVar = 1
    xbc: Value  # [R, n_heads · head_dim + 2 · n_groups · state_dim]
    z: Value  # [R, n_heads · head_dim]
    dt: Value  # [R, n_heads]
    decay: Vector  # [n_heads], below 0
    dt_bias: Vector  # [n_heads]
    skip: Vector  # [n_heads]
    norm: Vector  # [n_heads · head_dim]
    eps: float
    n_heads: int
    head_dim: int
    n_groups: int
    state_dim: int
    layer: int
    state_at: int = 0
