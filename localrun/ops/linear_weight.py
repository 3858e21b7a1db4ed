"""Matrices of linears, and what is done to their products. Torch-free."""

from localrun.base.dataclass import dataclass
from localrun.ops.layouts import Packed, Vector


@dataclass(frozen=True, slots=True)
class LowRank:
    """Addition of an adapter to the products of a matrix: scale · B (A a), with `a` in f32 (LoRA: Hu et al. 2021)."""

    a: Packed  # [rank, n_in]
    b: Packed  # [n_out, rank]
    scale: float


@dataclass(frozen=True, slots=True)
class LinearWeight:
    """A matrix and what is done to its products: y = scale · (W a) + its adapters + bias.

    With `gather` column i of the matrix is multiplied with number gather[i] of a row; adapters read rows as they are.
    Of experts that lie one after the other, each may have a scale of its own, and none has adapters.
    """

    packed: Packed  # [n_out, n_in]
    bias: Vector | None = None  # [n_out]
    scale: float | Vector = 1.0  # a Vector is [n_experts]
    adapters: tuple[LowRank, ...] = ()
    gather: Vector | None = None  # of int32 [n_in]
