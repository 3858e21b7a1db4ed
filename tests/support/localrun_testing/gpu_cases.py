"""The cases of the self-tests by platform, and the emulated devices that they run on."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from localrun.backends.cuda.self_test import CASES as CUDA
from localrun.backends.cuda.source import KERNELS as CUDA_KERNELS
from localrun.backends.gpu.source import KernelTexts
from localrun.backends.metal.linears import MatrixDevice
from localrun.backends.metal.self_test import CASES as METAL_CASES
from localrun.backends.metal.self_test_linears import has_exact_matrices
from localrun.backends.metal.source import KERNELS as METAL_KERNELS
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.emulator.metal import emulated_device

Name: TypeAlias = Literal["cuda", "metal"]
Case: TypeAlias = Callable[[Any], str]  # a device of the platform -> what is wrong


def matrices(device: MatrixDevice) -> str:
    """Products of matrices beside the chains that they stand for."""
    return "" if has_exact_matrices(device) else "other bits"


METAL: Mapping[str, Case] = {**METAL_CASES, "matrices": matrices}
CASES: Mapping[Name, Mapping[str, Case]] = {"cuda": CUDA, "metal": METAL}
TEXTS: Mapping[Name, KernelTexts] = {"cuda": CUDA_KERNELS, "metal": METAL_KERNELS}


def device_of(platform: Name, **given: Any) -> Any:
    """sanitizer, seed, poison, replace, of CUDA extra_bits: see EmulatedDevice."""
    return (EmulatedDevice if platform == "cuda" else emulated_device)(**given)


def platform_of(file: str) -> Name:
    """Whose kernels a file has."""
    return "metal" if file.endswith(".metal") else "cuda"
