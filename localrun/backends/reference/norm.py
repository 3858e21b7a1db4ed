"""Norms of rows, heads or groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight over the last dim (Zhang and Sennrich 2019)."""
    normed = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return normed if weight is None else normed * weight


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last dim (Ba, Kiros and Hinton 2016)."""
    away = x - x.mean(-1, keepdim=True)
    return away * (away.square().mean(-1, keepdim=True) + eps).rsqrt() * weight + bias
