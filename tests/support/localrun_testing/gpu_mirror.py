"""A pytest plugin: tests that run CUDA kernels on the emulator run them on the GPU of this machine instead.

    python -m pytest -p localrun_testing.gpu_mirror tests/kernels/cuda/test_linear.py …

Tensors stay in main memory, where tests made them: a launch takes whole storages to the GPU, runs the kernel that
NVRTC compiled for it, waits, and brings them back. So cases, shapes, references and comparisons bit by bit are the
emulator's. Tests of the emulator itself (sanitizers, replaced texts, cut sums, other generations) keep it.
LOCALRUN_MIRROR=copy tries the plugin where there is no GPU: the emulator computes on copies.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
import torch
from torch import Tensor

from localrun.backends.cuda import compiler
from localrun.backends.gpu.device import Argument, Dim, Kernel, Launch
from localrun_testing.emulator.cuda import EmulatedDevice

MIRROR = "LOCALRUN_MIRROR"
CUBINS = Path(gettempdir()) / "localrun-cubins"  # of all tests and processes: the home of a test is a folder of its own
OLD = 75  # whose instructions an emulated device may be asked for


def pytest_configure(config: pytest.Config) -> None:
    """For the whole run."""
    patch = pytest.MonkeyPatch()
    install(patch, on_copies=os.environ.get(MIRROR) == "copy")
    config.add_cleanup(patch.undo)


def install(patch: pytest.MonkeyPatch, on_copies: bool) -> None:
    """Give emulated devices the kernels of the GPU, or with `on_copies` their own on copies of all tensors."""
    emulated = EmulatedDevice.kernel

    def kernel(self: EmulatedDevice, file: str, name: str, **defines: int) -> Kernel:
        is_own = self.replace or self.sanitizer or self.extra_bits is not None
        is_own = is_own or (self.arch == OLD and not on_copies and gpu().arch != OLD)
        if is_own:
            return emulated(self, file, name, **defines)
        source = emulated(self, file, name, **defines) if on_copies else gpu().kernel(file, name, **defines)
        return MirroredKernel(source, on_copies)

    def bf16_product(self: EmulatedDevice, a: Tensor, b: Tensor, out: Tensor) -> Launch:
        where = torch.device("cpu") if on_copies else gpu().torch_device
        product = torch.float32 if on_copies else torch.bfloat16
        return lambda: void(out.copy_(torch.mm(a.to(where, product), b.to(where, product).T)))

    patch.setattr(EmulatedDevice, "kernel", kernel)
    patch.setattr(EmulatedDevice, "bf16_product", bf16_product)
    if not on_copies:
        patch.setattr(compiler, "_kept", kept_cubins)


def void(_: object) -> None:
    return None


@cache
def gpu() -> Any:
    from localrun.backends.cuda.cuda_device import CudaDevice

    return CudaDevice()


@cache
def kept_cubins() -> Any:
    from cuda.core.utils import FileStreamProgramCache

    return FileStreamProgramCache(CUBINS, max_size_bytes=1 << 30)


class MirroredKernel:
    """A kernel of another memory that is given tensors of main memory."""

    def __init__(self, kernel: Kernel, on_copies: bool) -> None:
        self.kernel, self.on_copies = kernel, on_copies

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        """A launch that has run, and brought its results back, when it returns."""
        if self.on_copies:
            self.kernel.bind(grid, block, *arguments, shared=shared)  # refuses wrong arguments at once

        def launch(keep: object = arguments) -> None:
            there: dict[int, tuple[Tensor, Tensor]] = {}
            given = [self.moved(argument, there) for argument in arguments]
            self.kernel.bind(grid, block, *given, shared=shared)()
            if not self.on_copies:
                torch.cuda.synchronize()
            for here, copy in there.values():
                here.copy_(copy)

        return launch

    def moved(self, argument: Argument, there: dict[int, tuple[Tensor, Tensor]]) -> Argument:
        """The bytes of a tensor inside the copy of its whole storage; anything else as it is."""
        if not isinstance(argument, Tensor):
            return argument
        storage = argument.untyped_storage()
        if storage.data_ptr() not in there:
            here = torch.empty(0, dtype=torch.uint8).set_(storage)
            there[storage.data_ptr()] = here, here.clone() if self.on_copies else here.cuda()
        here, copy = there[storage.data_ptr()]
        first = argument.data_ptr() - here.data_ptr()
        return copy[first : first + argument.numel() * argument.element_size()]
