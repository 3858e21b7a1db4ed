"""Whether Apple's GPU can be used here, and what to do where it cannot: asked before torch is imported."""

from __future__ import annotations

import os
import platform
import sys

from localrun.backends.gpu.emulation import why_not_emulated
from localrun.backends.metal import system
from localrun.backends.reference.backend import why_torch_cannot_use
from localrun.base.environment import is_switched_on
from localrun.base.macos import sysctl_number

FAST_MATH = "PYTORCH_MPS_FAST_MATH"  # 1: torch lets the compiler reorder sums, and take it that nothing is NaN
EMULATE = "LOCALRUN_EMULATE_MPS"  # 1: kernels run on the processor, hundreds of times slower, to be tested
OLDEST_MACOS = 14  # with Metal 3.1
OLDEST_TORCH = (2, 7)  # the first with torch.mps.compile_shader


def is_emulated() -> bool:
    return os.environ.get(EMULATE) == "1"


def has_apple_gpu() -> bool:
    """Whether the machine is a Mac with Apple silicon, whatever Python runs on it."""
    return sys.platform == "darwin" and sysctl_number("hw.optional.arm64") == 1


def why_unavailable() -> str:
    """The first thing in the way, with what to do; empty where there is none."""
    if is_emulated():
        return why_not_emulated(EMULATE)
    if not has_apple_gpu():
        return "this machine has no Apple GPU"
    if platform.machine() != "arm64":
        return f"this is Python for {platform.machine()}: install one for Apple silicon (arm64)"
    if (found := system.macos()) and found[0] < OLDEST_MACOS:
        return f"macOS {'.'.join(map(str, found))} is older than {OLDEST_MACOS}, the first with Metal 3.1: update it"
    if is_switched_on(FAST_MATH):
        return f"{FAST_MATH} is set, by which kernels would compute other numbers: unset it"
    return why_torch_is_too_old()


def why_torch_is_too_old() -> str:
    from importlib.metadata import PackageNotFoundError, version  # asked on a Mac only

    try:
        found = version("torch")
    except PackageNotFoundError:
        return "PyTorch is not installed"
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    needed = ".".join(map(str, OLDEST_TORCH))
    return "" if numbers >= OLDEST_TORCH else f"PyTorch {found} cannot compile Metal kernels: install {needed} or newer"


def why_torch_has_no_mps() -> str:
    """Asked when torch is imported anyway."""
    import torch

    if not torch.backends.mps.is_built():
        return "the PyTorch that is installed is built without MPS: see pytorch.org for the command for macOS"
    return why_torch_cannot_use("mps", "Apple GPU", torch.backends.mps.is_available())
