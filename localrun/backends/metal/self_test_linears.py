"""One small case of every Metal kernel that reads weights or works on rows, and what is found out of matrix products.

A case runs on a device and says what is wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch

from localrun.backends.gpu import matrices
from localrun.backends.gpu.made_up_weights import CLOSE, N_IN, N_OUT, decoded, packed, products, weights
from localrun.backends.gpu.synthetic import between_ones, far
from localrun.backends.metal import linears, norms
from localrun.backends.metal.linears import MatrixDevice
from localrun.ops.instructions import LinearWeight

MetalCase: TypeAlias = Callable[[MatrixDevice], str]

EPS = 1e-6


def has_exact_matrices(device: MatrixDevice) -> bool:
    """Whether a product of 8 x 8 matrices is, bit by bit, a chain of fma in ascending order.

    Where it is not, linears of many rows do without: a row alone must give the same bits as among others.
    """
    weight = packed("F16", weights("F16"), device)
    x = between_ones(20, N_IN).to(device.torch_device)
    outs = [torch.zeros(20, N_OUT, device=device.torch_device) for _ in range(2)]
    for matrix, out in enumerate(outs):
        linears.many(device, x, [(LinearWeight(weight), out)], 20, None, 1.0, MATRIX=matrix)()
    return torch.equal(*outs)


def linear_of_few(device: MatrixDevice) -> str:
    """Scales of 32 columns with minima, and of 16 without."""
    return linear(device, "Q4_K", 3) or linear(device, "Q6_K", 8)


def linear_of_many(device: MatrixDevice) -> str:
    return linear(device, "Q4_K", 12) or linear(device, "Q6_K", 20)


def linear_of_floats(device: MatrixDevice) -> str:
    return linear(device, "F16", 5)


def linear(device: MatrixDevice, qtype: str, rows: int) -> str:
    """Two matrices at once, one with a scale and a bias; the first row alone."""
    where = device.torch_device
    raw = weights(qtype)
    x, bias = between_ones(rows, N_IN), between_ones(N_OUT)
    matrix = packed(qtype, raw, device)
    there, given = x.to(where), [LinearWeight(matrix, bias.to(where), scale=0.5), LinearWeight(matrix)]
    outs = [torch.zeros(rows, N_OUT, device=where) for _ in range(2)]
    alone = torch.zeros(1, N_OUT, device=where)
    launches = linears.linear(device, there, given, outs, rows)
    for launch in launches + linears.linear(device, there[:1], given[1:], [alone], 1):
        launch()
    exact, size = products(x, decoded(qtype, raw))
    for out, wanted in zip(outs, (0.5 * exact + bias, exact), strict=True):
        error = float(((out.cpu() - wanted).abs() / size).max())
        if not error <= CLOSE:
            return f"{qtype} off by {error:.1e}"
    return "" if torch.equal(alone, outs[1][:1]) else f"{qtype}: a row alone gives other bits"


def gate_and_up(device: MatrixDevice) -> str:
    """Read through a norm, to the bits of a norm before; then silu(gate) · up on top of a residual."""
    where = device.torch_device
    raw = weights("F16")
    x, gain, residual = between_ones(2, N_IN), between_ones(N_IN), between_ones(2, N_OUT)
    there, gains, rest = (tensor.to(where) for tensor in (x, gain, residual))
    matrices = [LinearWeight(packed("F16", part, device)) for part in (raw, raw.roll(1, 0))]
    outs = [torch.zeros(2, N_OUT, device=where) for _ in range(2)]
    normed = torch.zeros(2, N_IN, device=where)
    before = linears.linear(device, normed, matrices, outs[:1], 2, residual=rest, act="silu_mul")
    fused = linears.linear(device, there, matrices, outs[1:], 2, residual=rest, act="silu_mul", norm=(gains, EPS))
    for launch in [norms.norm(device, there, gains, EPS, 2, out=normed), *before, *fused]:
        launch()
    gate, up = (normed.cpu().double() @ decoded("F16", part).double().T for part in (raw, raw.roll(1, 0)))
    wrong = far("gate and up", outs[0], residual + torch.nn.functional.silu(gate) * up)
    return wrong or ("" if torch.equal(*outs) else "a norm within gives other bits")


def embed(device: MatrixDevice) -> str:
    raw, ids = weights("Q4_K"), torch.tensor([7, 0, 39], dtype=torch.int32)
    out = torch.zeros(3, N_IN, device=device.torch_device)
    matrices.embed(device, packed("Q4_K", raw, device), ids.to(device.torch_device), 2.0, out, 3)()
    return "" if torch.equal(out.cpu(), 2 * decoded("Q4_K", raw)[ids]) else "other numbers"


def norm(device: MatrixDevice) -> str:
    """One norm for a row, with a residual."""
    x, weight = between_ones(3, 1100), between_ones(1100)
    there, gain = (tensor.to(device.torch_device) for tensor in (x, weight))
    out = torch.zeros(3, 1100, device=device.torch_device)
    norms.norm(device, there, gain, EPS, 3, residual=there, out=out)()
    return far("norm", out, x + x.double() * (x.double().square().mean(-1, keepdim=True) + EPS).rsqrt() * weight)


CASES: Mapping[str, MetalCase] = {
    "norm": norm,
    "linear of few": linear_of_few,
    "linear of many": linear_of_many,
    "linear of floats": linear_of_floats,
    "gate and up": gate_and_up,
    "embed": embed,
}
