"""Self-test of the CUDA kernels: one small case of each. Tests run them under sanitizers and on broken kernels, too.

A case runs on a device and says what is wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from localrun.backends.cuda import norms, self_test_linears
from localrun.backends.cuda.products import CudaProducts
from localrun.backends.cuda.self_test_intrinsics import intrinsics
from localrun.backends.cuda.source import kernels_hash
from localrun.backends.gpu import elementwise, self_test
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.self_test_attention import AttentionCases
from localrun.backends.gpu.self_test_cases import drawing, gates, gathering, ranking
from localrun.backends.gpu.self_test_mixture import MixtureCases
from localrun.backends.gpu.self_test_recurrent import CASES as RECURRENT
from localrun.backends.gpu.synthetic import between_ones, far

CudaCase: TypeAlias = Callable[[Device], str]


EPS = 1e-6
# Tensor cores cut off what is below the last bit of the greatest addend (kernels/emulator/warp.cpp), so sums of n
# products in units of w with b extra bits lose at most (n + n / w) · 2^-(23 + b), and n / w · 2^-23 where units
# round, of the greatest partial sum; half of it on average. Values of a block are n = 128 products, 64 keys by the
# two halves of a weight: 2.3e-5 at most on Turing (w 4, b 0), 1.1e-5 on Ampere and Ada (8, 1), 5.0e-6 on Hopper (16,
# 2). Errors of scores count by how they differ, which is less. The emulator finds 1.1e-5, 5.2e-6 and 3.1e-6, and 1e-2
# with a fragment that is wrong.
CLOSE_WHEN_CUT = 3e-5
ATTENTION = AttentionCases(CLOSE_WHEN_CUT, halves=True)


def norm(device: Device) -> str:
    """One norm for a row, with a residual, quantised."""
    x, weight = between_ones(3, 200), between_ones(200)
    out, q8 = torch.zeros(3, 200, device=device.torch_device), Q8.of(200, 3, device.torch_device)
    args = [tensor.to(device.torch_device) for tensor in (x, weight)]
    norms.norm(device, args[0], args[1], EPS, 3, residual=args[0], out=out, q8=q8)()
    exact = x + x.double() * (x.double().square().mean(-1, keepdim=True) + EPS).rsqrt() * weight
    return far("norm", out, exact) or other_codes(q8, out)


def quantize(device: Device) -> str:
    """More columns than a block of threads has."""
    x = between_ones(2, 1100).to(device.torch_device)
    q8 = Q8.of(1100, 2, device.torch_device)
    norms.quantize(device, x, 2, q8)()
    return other_codes(q8, x)


def other_codes(found: Q8, x: Tensor) -> str:
    """Whether rows were quantised to other codes than torch gives."""
    return "" if found.is_of(x) else "other codes"


CASES: Mapping[str, CudaCase] = {
    "intrinsics": intrinsics,
    "norm": norm,
    "quantize": quantize,
    "gates": gates,
    "gathering": gathering,
    "ranking": ranking,
    "drawing": drawing,
    **ATTENTION.named(),
    **RECURRENT,
    "linear of few": self_test_linears.linear_of_few,
    "linear of two layouts": self_test_linears.linear_of_two_layouts,
    "gate beside up": self_test_linears.gate_beside_up,
    "linear of many": self_test_linears.linear_of_many,
    "linear of floats": self_test_linears.linear_of_floats,
    "linear in bulk": self_test_linears.linear_in_bulk,
    "embed": self_test_linears.embed,
    "dequantize": self_test_linears.dequantize,
    **MixtureCases(CudaProducts).named(),
}


def why_not(device: Device, identity: str) -> str:
    """Why this device is not to be trusted; empty where it is, and then it knows whether it has graphs.

    identity: the device, its driver and the compiler, in words.
    """
    identity = f"{identity} {kernels_hash()}"
    wrong = self_test.why_not("CUDA", CASES, device, identity)
    if not wrong:
        device.has_graphs = self_test.found_out("CUDA", f"graphs {identity}", lambda: replays(device))
    return wrong


def replays(device: Device) -> bool:
    """Whether recorded launches do what they do one by one, on numbers that have changed since."""
    x = between_ones(1, 300).to(device.torch_device)
    once, twice = torch.zeros_like(x), torch.zeros_like(x)
    launches = [elementwise.scale(device, x, 0.5, once), elementwise.scale(device, once, -3.0, twice)]
    try:
        with device.steps():
            for launch in launches:
                launch()
            recorded = device.record(launches)
            x += 1
            if recorded is not None:
                recorded()
            device.finish()
    except Exception:  # whatever a driver may raise: launches one by one have passed
        return False
    return recorded is not None and torch.equal(twice, x * 0.5 * -3.0)
