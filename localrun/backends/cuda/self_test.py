"""The self-test of the CUDA kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.backends.cuda.self_test_cases import CASES
from localrun.backends.cuda.source import kernels_hash
from localrun.backends.gpu import self_test

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Device


def why_not(device: Device, identity: str) -> str:
    """Why this device is not to be trusted; `identity`: it, its driver and the compiler, in words."""
    return self_test.why_not("CUDA", CASES, device, f"{identity} {kernels_hash()}")
