"""Linears of the CUDA backend on an emulated device: weights, quantised activations, runs, and what is exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from localrun.backends.cuda.linears import dequantize, linear, reads_q8
from localrun.backends.cuda.self_test import CudaCase
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.layouts import tiles_of
from localrun.backends.gpu.matrices import embed, matrix_arguments
from localrun.backends.gpu.q8 import Q8
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation
from localrun_testing.emulator.cuda import EmulatedDevice

from .gpu_weights import BEYOND, CODES, FLOATS, columns, packed, random_rows

ERROR = 3e-7  # of sums in float32, beside the sum of all magnitudes


def quantized(x: Tensor) -> Q8:
    q8 = Q8.of(x.shape[1], len(x), torch.device("cpu"))
    q8.quantize(x)
    return q8


def run(
    x: Tensor,
    weights: list[LinearWeight],
    *,
    device: Device | None = None,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
) -> list[Tensor]:
    """A linear of all rows of x into outputs that were NaN; what lies behind them has to stay."""
    rows, n_outs = len(x), [weight.packed.n_rows for weight in (weights if act == "none" else weights[:1])]
    memory = [torch.full((rows + BEYOND, n), torch.nan) for n in n_outs]
    outs = [part[:rows] for part in memory]
    for launch in linear(
        device or EmulatedDevice(),
        x,
        quantized(x),
        weights,
        outs,
        rows,
        residual=residual,
        out_scale=out_scale,
        act=act,
    ):
        launch()
    assert all(part[rows:].isnan().all() for part in memory)
    return outs


@dataclass(frozen=True)
class Exact:
    """x @ W.T in float64, of x as the kernel sees it, and the size that errors are measured by."""

    values: Tensor
    size: Tensor

    @classmethod
    def of(cls, x: Tensor, weight: Packed) -> Exact:
        seen = quantized(x).decoded(x.shape[1]) if reads_q8(weight) else x
        decoded = weight.unpack().double()
        return cls(seen.double() @ decoded.T, seen.double().abs() @ decoded.abs().T)

    def error(self, found: Tensor) -> float:
        """The greatest, beside the sum of all magnitudes: cancellation does not count."""
        return float(((found - self.values).abs() / self.size).max())


def run_twin(x: Tensor, weight: Packed, device: Device) -> Tensor:
    """The linear without tensor cores."""
    q8, found = quantized(x), torch.full((len(x), weight.n_rows), torch.nan)
    inputs = (q8.codes, q8.groups, None, 1.0, q8.codes.shape[1] // 64, len(x), q8.groups.shape[1])
    kernel = device.kernel("linear_dp4a.cu", "linear_dp4a", **tiles_of(weight.qtype).defines)
    grid = (-(-weight.n_rows // 16), len(x), 1)
    kernel.bind(grid, (256, 1, 1), *matrix_arguments([(LinearWeight(weight), found)]), *inputs)()
    return found


def every_kernel(qtype: str, device: Device) -> str:
    """What is wrong with one of the kernels that read this layout; nothing when all is well."""
    weight = packed(qtype, 37, columns(qtype))
    decoded = weight.unpack()
    for rows in (3, 10, 20, 70):
        x = random_rows(rows, weight.n_cols)
        (found,) = run(x, [LinearWeight(weight)], device=device)
        if not Exact.of(x, weight).error(found) < ERROR:
            return f"linear of {rows} rows"
        if rows == 3 and reads_q8(weight) and not torch.equal(run_twin(x, weight, device), found):
            return "linear without tensor cores"
    ids, out = torch.tensor([36, 0, 8], dtype=torch.int32), torch.empty(3, weight.n_cols)
    embed(device, weight, ids, 1.0, out, 3)()
    if not torch.equal(out, decoded[ids]):
        return "embed"
    if reads_q8(weight):
        nearest = torch.empty(37, weight.n_cols, dtype=torch.bfloat16)
        dequantize(device, weight, nearest)()
        return "" if torch.equal(nearest, decoded.bfloat16()) else "dequantize"
    return ""


LAYOUT_CASES: Mapping[str, CudaCase] = {
    f"every kernel of {qtype}": partial(every_kernel, qtype) for qtype in (*CODES, *FLOATS)
}
