"""Linears of the CUDA backend on an emulated device: weights, quantised activations, runs, and what is exact."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from localrun.backends.cuda.device import Device
from localrun.backends.cuda.emulated_device import EmulatedDevice
from localrun.backends.cuda.layouts import CudaLayout
from localrun.backends.cuda.linears import Weight, linear, reads_q8
from localrun.backends.cuda.q8 import Q8
from localrun.ops.layouts import Packed, RowReader
from localrun.ops.types import LinearActivation

from .native_ops import sample

# One type a layout.
CODES = (
    "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4", "NVFP4", "Q2_K", "Q3_K", "Q5_K",
    "IQ4_XS", "Q8_K",
)  # fmt: skip
FLOATS = ("F16", "BF16", "F32")
GRIDS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0")  # in the layout of Q8_K
BEYOND = 3  # rows of an output that no kernel may touch


def packed(qtype: str, n_rows: int, n_cols: int, seed: int = 0) -> Packed:
    """A matrix of ordinary size."""
    raw = sample(qtype, n_rows, n_cols, seed)
    return CudaLayout().pack(RowReader(qtype, n_rows, n_cols, lambda first, n: raw[first : first + n].numpy()))


def random_rows(n: int, n_cols: int, seed: int = 1) -> Tensor:
    return torch.randn(n, n_cols, generator=torch.Generator().manual_seed(seed))


def quantized(x: Tensor) -> Q8:
    q8 = Q8.of(x.shape[1], len(x), torch.device("cpu"))
    q8.quantize(x)
    return q8


def run(
    x: Tensor,
    weights: list[Weight],
    *,
    device: Device | None = None,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
) -> list[Tensor]:
    """A linear of all rows of x into outputs that were NaN; what lies behind them has to stay."""
    rows, n_outs = len(x), [weight.n_rows for weight, _ in (weights if act == "none" else weights[:1])]
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
