"""Launches of RMS norm by Metal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.backends.gpu.device import Device, Launch

if TYPE_CHECKING:
    from torch import Tensor

THREADS = 256  # of a norm, at most: each has four columns at a time


def norm(
    device: Device,
    x: Tensor,
    weight: Tensor,
    eps: float,
    rows: int,
    *,
    residual: Tensor | None = None,
    out: Tensor,
) -> Launch:
    """residual + RMS norm of every len(weight) numbers of x, f32 [rows, n] -> out, f32 alike."""
    width, size = x.shape[-1], len(weight)
    assert width % size == 0
    threads = min(THREADS, -(-size // 128) * 32)
    kernel = device.kernel("norm.metal", "rms_norm")
    return kernel.bind((rows, width // size, 1), (threads, 1, 1), x, weight, residual, out, width, size, eps)
