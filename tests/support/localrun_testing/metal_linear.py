"""Linears of the Metal backend on an emulated device: runs of them, and what is exact."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from localrun.backends.gpu.matrices import embed
from localrun.backends.metal.linears import MatrixDevice, NormWeight, linear
from localrun.backends.metal.self_test_linears import MetalCase
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation
from localrun_testing.emulator.metal import emulated_device

from .gpu_weights import BEYOND, CODES, FLOATS, columns, packed, random_rows

ERROR = 3e-7  # of sums in float32, beside the sum of all magnitudes


def run(
    x: Tensor,
    weights: list[LinearWeight],
    *,
    device: MatrixDevice | None = None,
    residual: Tensor | None = None,
    out_scale: float = 1.0,
    act: LinearActivation = "none",
    norm: NormWeight | None = None,
) -> list[Tensor]:
    """A linear of all rows of x into outputs that were NaN; what lies behind them has to stay."""
    rows, n_outs = len(x), [weight.packed.n_rows for weight in (weights if act == "none" else weights[:1])]
    memory = [torch.full((rows + BEYOND, n), torch.nan) for n in n_outs]
    outs = [part[:rows] for part in memory]
    rest = {"residual": residual, "out_scale": out_scale, "act": act, "norm": norm}
    for launch in linear(device or emulated_device(), x, weights, outs, rows, **rest):  # type: ignore[arg-type]
        launch()
    assert all(part[rows:].isnan().all() for part in memory)
    return outs


def matrix_device(seed: int = 0, poison: int = 0xFF) -> MatrixDevice:
    """One that multiplies 8 x 8 matrices exactly as chains of fma do."""
    device = emulated_device(seed=seed, poison=poison)
    device.exact_matrices = True
    return device


def error(found: Tensor, x: Tensor, weight: Packed) -> float:
    """The greatest beside x @ W.T in float64, measured by the sum of all magnitudes: cancellation does not count."""
    wide, decoded = x.double(), weight.unpack().double()
    return float(((found - wide @ decoded.T).abs() / (wide.abs() @ decoded.abs().T)).max())


def every_kernel(qtype: str, device: MatrixDevice) -> str:
    """What is wrong with one of the kernels that read this layout; nothing when all is well."""
    weight = packed(qtype, 37, columns(qtype))
    x = random_rows(40, weight.n_cols)
    found = [run(x[:rows], [LinearWeight(weight)], device=device)[0] for rows in (3, 8, 12, 40)]
    if not error(found[-1], x, weight) < ERROR:
        return "linear of 40 rows"
    if not all(torch.equal(part, found[-1][: len(part)]) for part in found):
        return "rows that depend on others"
    ids, out = torch.tensor([36, 0, 8], dtype=torch.int32), torch.empty(3, weight.n_cols)
    embed(device, weight, ids, 1.0, out, 3)()
    return "" if torch.equal(out, weight.unpack()[ids]) else "embed"


LAYOUT_CASES: Mapping[str, MetalCase] = {
    f"every kernel of {qtype}": partial(every_kernel, qtype) for qtype in (*CODES, *FLOATS)
}
