"""Instructions of multi-head latent attention (MLA: DeepSeek-V2, arXiv 2405.04434), absorbed: a row's query meets the
stored latents themselves, which are also the values.

Like those of `instructions.py`, which lists them all. A key is a latent of `rank` numbers, then `dims` that are turned.
"""

from __future__ import annotations

from typing import ClassVar

from localrun.base.dataclass import dataclass
from localrun.ops.linear_weight import LinearWeight
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class HeadLinear:
    """Every head of x times a matrix of its own: y[r, h] = W[h] x[r, h] -> f32 [R, n_heads · n_out].

    The matrices lie one after the other; their products have a scale and a bias as in a linear, and no adapters.
    """

    name: ClassVar = "head_linear"
    n_results: ClassVar = 1
    x: Value  # [R, n_heads · n_in]
    weight: LinearWeight  # [n_heads · n_out, n_in]; its scale may be a Vector [n_heads]
    n_heads: int


@dataclass(frozen=True, slots=True)
class LatentAppend:
    """Turn q_rope and k_rope by rope kind `rope`, store the key of every row, its latent and k_rope -> q and q_rope of
    each head side by side, f32 [R, n_heads, rank + dims]."""

    name: ClassVar = "latent_append"
    n_results: ClassVar = 1
    q: Value  # [R, n_heads · rank]
    q_rope: Value  # [R, n_heads · dims]
    latent: Value  # [R, rank]
    k_rope: Value  # [R, dims]
    layer: int
    rope: int | None  # None: positions are not encoded
