"""Launches of RMS norm and of quantising rows for the int8 tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.q8 import GROUP, q8_arguments

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.q8 import Q8

THREADS = 512  # of a norm, at most: each has four columns at a time
QUANTIZED_COLUMNS = 1024  # of a block that only quantises


def norm(
    device: Device,
    x: Tensor,
    weight: Tensor,
    eps: float,
    rows: int,
    *,
    residual: Tensor | None = None,
    out: Tensor | None = None,
    q8: Q8 | None = None,
) -> Launch:
    """residual + RMS norm of every len(weight) numbers of x, f32 [rows, n] -> `out`, f32 alike, or `q8`, or both."""
    width, size = x.shape[-1], len(weight)
    assert width % size == 0
    assert q8 is None or size == width or size % GROUP == 0, "a group of codes is of one norm"
    threads = min(THREADS, -(-size // 128) * 32)  # follows from `size` alone, as the order of its sums does
    kernel = device.kernel("norm.cu", "rms_norm")
    arguments = (x, weight, residual, out, *q8_arguments(q8), width, size, eps)
    return kernel.bind((rows, width // size, 1), (threads, 1, 1), *arguments)


def quantize(device: Device, x: Tensor, rows: int, q8: Q8) -> Launch:
    """x, f32 [rows, n] -> `q8`."""
    grid = (rows, -(-q8.codes.shape[-1] // QUANTIZED_COLUMNS), 1)
    return device.kernel("norm.cu", "quantize").bind(grid, (256, 1, 1), x, *q8_arguments(q8), x.shape[-1])
