"""Launches of what is done to each number by itself; all operands are f32 [rows, n] unless they say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.backends.gpu.device import Argument, Device, Launch

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.ops.instructions import Xielu

THREADS = 256  # of a block, each with one number


def sigmoid_mul(device: Device, x: Tensor, gate: Tensor, out: Tensor) -> Launch:
    """x · sigmoid(gate)"""
    return launch(device, "sigmoid_mul", out, x, gate, out, out.shape[-1])


def gelu_mul(device: Device, gate: Tensor, x: Tensor, first: int, out: Tensor) -> Launch:
    """gelu(gate) · the n numbers from `first` on of every row of x, f32 [rows, first + n or more]"""
    return launch(device, "gelu_mul", out, gate, x, out, out.shape[-1], first, x.shape[-1])


def scale(device: Device, x: Tensor, factor: float, out: Tensor) -> Launch:
    """factor · x"""
    return launch(device, "scale", out, x, out, out.shape[-1], factor)


def xielu(device: Device, op: Xielu, x: Tensor, out: Tensor) -> Launch:
    """The activation of `op` of x"""
    return launch(device, "xielu", out, x, out, out.shape[-1], op.positive, op.negative, op.linear, op.limit)


def gather_rows(device: Device, x: Tensor, rows: Tensor, places: Tensor, out: Tensor) -> Launch:
    """Row rows[i] of x -> row places[i] of `out`; places of -1 leave it as it is. rows, places: int32 [n]"""
    kernel, n = device.kernel("elementwise" + device.ending, "gather_rows"), x.shape[-1]
    return kernel.bind((-(-n // THREADS), len(rows), 1), (THREADS, 1, 1), x, rows, places, out, n)


def launch(device: Device, name: str, out: Tensor, *arguments: Argument) -> Launch:
    rows, n = out.shape
    return device.kernel("elementwise" + device.ending, name).bind(
        (-(-n // THREADS), rows, 1), (THREADS, 1, 1), *arguments
    )
