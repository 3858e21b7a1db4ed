"""Whether CUDA can be used here, and what to install where it cannot: asked before torch is imported."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from localrun.backends.cuda.driver import Gpu, find_gpu
from localrun.backends.gpu.emulation import why_not_emulated
from localrun.base.units import gib

EMULATE = "LOCALRUN_EMULATE_CUDA"  # 1: kernels run on the processor, hundreds of times slower, to be tested
OLDEST_ARCH, NEEDED_CUDA = 75, 13000  # Turing; what the kernels are compiled with
MODULES = ("cuda.core", "cuda.bindings")
PACKAGES = (("cuda-core", (1, 2), (2,)), ("cuda-bindings", (13,), (14,)))  # versions, as in pyproject.toml
LEAST_FREE = 1 << 30  # bytes of a GPU's memory; CUDA and torch take more than half of them
INSTALL = "pip install 'localrun[cuda]'"


def is_emulated() -> bool:
    return os.environ.get(EMULATE) == "1"


chosen = 0  # the number of the GPU of this process (chosen_gpu.py)
is_in_use = False  # once it computes


def gpu() -> Gpu | str:
    """The GPU as first found by this process; free memory is asked for again by `CudaBackend.memory`."""
    return first_found(chosen)


first_found = cache(find_gpu)


def why_unavailable() -> str:
    """The first thing in the way, with what to do; empty where there is none."""
    if is_emulated():
        return why_not_emulated(EMULATE)
    found = gpu()
    if isinstance(found, str):
        return found
    if found.arch < OLDEST_ARCH:
        return f"{found.name} (sm_{found.arch}) is older than Turing, the first that CUDA 13 still runs on"
    if found.cuda < NEEDED_CUDA:
        known = version(found.cuda)
        return f"the driver of {found.name} knows CUDA {known}: install one for CUDA 13.0 or newer (from 580 on)"
    if found.free is not None and found.free < LEAST_FREE:
        return f"only {gib(found.free)} of the {gib(found.total)} of {found.name} are free: close what else uses it"
    return why_torch_lacks_cuda() or why_packages_are_missing() or why_no_nvrtc()


def why_torch_lacks_cuda() -> str:
    """Why torch lacks CUDA, by the text of its version, since importing torch takes seconds."""
    text = torch_version(torch_folder())
    built_for = re.search(r"^cuda.*=\s*'([\d.]+)'", text, re.MULTILINE)
    if built_for is None:
        return "the PyTorch that is installed has no CUDA: see pytorch.org for the command that installs it with CUDA"
    if int(built_for[1].split(".")[0]) < NEEDED_CUDA // 1000:
        return f"PyTorch is built for CUDA {built_for[1]}: install one for CUDA 13.0 or newer (see pytorch.org)"
    return ""


@cache
def torch_version(folder: Path) -> str:
    return (folder / "version.py").read_text("utf-8")


def torch_folder() -> Path:
    spec = find_spec("torch")
    assert spec is not None, "localrun requires it"
    assert spec.origin is not None
    return Path(spec.origin).parent


def why_packages_are_missing() -> str:
    missing = [name for name in MODULES if not has_module(name)]
    if missing:
        return f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not installed: {INSTALL}"
    from importlib.metadata import version as installed  # asked where there is a GPU only

    for package, least, below in PACKAGES:
        found = installed(package)
        if not least <= numbers(found) < below:
            needed = f"{dotted(least)} or newer, but below {dotted(below)}"
            return f"{package} {found} is installed, where the kernels need {needed}: {INSTALL}"
    return ""


def numbers(found: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", found)[:2])


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


@cache
def why_no_nvrtc() -> str:
    """Whether NVIDIA's compiler can be loaded."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except RuntimeError:
        return f"NVRTC, which compiles the kernels, is not installed: {INSTALL}"
    return ""


def has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def version(number: int) -> str:
    """CUDA's own numbers as people write them: 12.8 for 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"
