"""Instructions of encoders: attention in both directions, without a cache."""

from typing import ClassVar

from localrun.base.dataclass import dataclass
from localrun.ops.layouts import Vector
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """(x - mean) / sqrt(variance + eps) · weight + bias, of every row (Ba, Kiros and Hinton 2016) -> f32 [R, n]."""

    name: ClassVar = "layer_norm"
    n_results: ClassVar = 1
    x: Value  # [R, n]
    weight: Vector  # [n]
    bias: Vector  # [n]
    eps: float


@dataclass(frozen=True, slots=True)
class Clamp:
    """Every number of x brought between `low` and `high` -> f32 [R, n]. One that is no number stays so."""

    name: ClassVar = "clamp"
    n_results: ClassVar = 1
    x: Value  # [R, n]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SelfAttention:
    """Attention of every row over all rows of its sequence in the step -> f32 [R, n_heads · head_dim].

    Queries and keys are turned by rope kind `rope` first; scores are scale · q·k. Keys and values are rounded once, to
    16 bits, where a backend multiplies those.
    """

    name: ClassVar = "self_attention"
    n_results: ClassVar = 1
    q: Value  # [R, n_heads · head_dim]
    k: Value  # [R, n_heads · head_dim]
    v: Value  # [R, n_heads · head_dim]
    n_heads: int
    rope: int | None  # None: positions are not encoded
    scale: float
