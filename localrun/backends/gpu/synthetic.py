"""Pseudorandom numbers, the same on every machine and with every version of torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

CLOSE = 4e-6  # of the greatest number of a result


def scattered(*shape: int) -> Tensor:
    """Integers all over the range of an int32 [shape], as int64 on the CPU."""
    word = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64) * 2654435761 % (1 << 32)
    return ((word ^ word >> 15) - (1 << 31)).view(shape)


def between_ones(*shape: int) -> Tensor:
    """f32 [shape] from -1 to 1, on the CPU."""
    return (scattered(*shape).double() / 2**31).float()


def error_of(found: Tensor, exact: Tensor) -> float:
    """The greatest error of a result, of its greatest number."""
    return float((found.cpu().double() - exact).abs().max() / exact.abs().max())


def far(what: str, found: Tensor, exact: Tensor, most: float = CLOSE) -> str:
    """How far a result is from what it should be, where that is too far."""
    return off(what, error_of(found, exact), most)


def off(what: str, error: float, most: float) -> str:
    """Report of an error that is too large; empty where it is not. Every comparison of a self-test ends here."""
    return "" if error <= most else f"{what} off by {error:.1e}"
