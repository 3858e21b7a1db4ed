"""Apple's GPUs: Metal kernels of our own for what most models do, the reference operations on the device for the rest.

With LOCALRUN_EMULATE_MPS=1 the same kernels run on the processor, to be tested where there is no Mac.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from localrun.backends.gpu.backend import GpuBackend
from localrun.backends.gpu.emulation import emulated_device
from localrun.backends.gpu.limits import TorchLimitProbe
from localrun.backends.gpu.scratch import arena_bytes
from localrun.backends.metal import availability, system
from localrun.backends.metal.memory import gpu_memory, usual_limit
from localrun.base.machine import Memory, peak_rss
from localrun.base.macos import sysctl_number
from localrun.ops.kv import KVCodec
from localrun.ops.types import NUMERICS_VERSION

if TYPE_CHECKING:
    from localrun.backends.executor import Executor, ExecutorRequest
    from localrun.backends.limits import LimitProbe
    from localrun.backends.metal.device import MetalDevice
    from localrun.ops.layouts import Layout
    from localrun.ops.recording import Recording

NO_MATRICES = "its products of 8×8 matrices are no chains of fma, as answers need them"
MEGABYTE = 1 << 20  # of iogpu.wired_limit_mb


class MetalBackend(GpuBackend):
    """The GPU of a Mac."""

    name = "mps"

    @property
    def is_emulated(self) -> bool:
        return availability.is_emulated()

    @property
    def torch_name(self) -> str:
        return "cpu" if self.is_emulated else "mps"

    @property
    def gpu_name(self) -> str:
        return system.chip()

    @property
    def chip(self) -> str:
        return "emulated" if self.is_emulated else system.chip()

    @cached_property
    def kernel_device(self) -> MetalDevice:
        """The seam to the GPU or its emulator."""
        if self.is_emulated:
            device: MetalDevice = emulated_device("metal")
            return device
        import torch

        from localrun.backends.metal.device import MetalDevice

        return MetalDevice(torch.mps.compile_shader, "mps", system.family(system.chip()))

    @property
    def rounding(self) -> str:
        return f"mps {self.identity} {NUMERICS_VERSION}"

    @property
    def identity(self) -> str:
        """The chip, and all that decides what kernels become on it."""
        from localrun.backends.metal.source import KERNELS

        fast = f"fast math {os.environ.get(availability.FAST_MATH, '')}"
        return " ".join((self.chip, *self.versions().values(), fast, KERNELS.kernels_hash()))

    def why_unavailable(self) -> str:
        return availability.why_unavailable()

    def degraded_reason(self) -> str:
        """A GPU that is there and not used."""
        return (
            f"the GPU of the {system.chip()} is not used"
            if availability.has_apple_gpu() and self.why_unavailable()
            else ""
        )

    def self_test(self) -> str:
        if self.is_emulated:
            return ""  # that is what the emulator is held against
        from localrun.backends.metal.self_test import why_not

        return availability.why_torch_has_no_mps() or why_not(self.kernel_device, self.identity)

    def summary(self) -> str:
        found = self.__dict__.get("kernel_device")  # once it has been tried
        has_none = found is not None and not self.is_emulated and not found.exact_matrices
        return super().summary() + ("; prompts are read slower: " + NO_MATRICES) * has_none

    def details(self) -> dict[str, Any]:
        if not availability.has_apple_gpu():
            return {"device": None, "family": None, "macos": None}
        found = ".".join(map(str, system.macos()))
        return {"device": self.chip, "family": f"Apple{system.family(system.chip())}", "macos": found}

    def versions(self) -> dict[str, str]:
        """Versions of everything that determines compiled kernels."""
        import torch

        if self.is_emulated:
            return {"torch": torch.__version__}
        return {"macos": ".".join(map(str, system.macos())), "torch": torch.__version__}

    def memory(self, main: Memory) -> Memory:
        """A part of main memory. What torch keeps for later use of this process counts as free."""
        if self.is_emulated:
            return main
        wired = (sysctl_number("iogpu.wired_limit_mb") or 0) * MEGABYTE
        torch = sys.modules.get("torch")
        if torch is None or not torch.backends.mps.is_available():  # importing it takes seconds
            return gpu_memory(main, wired or usual_limit(main.total), 0)
        kept = torch.mps.driver_allocated_memory() - torch.mps.current_allocated_memory()
        found = gpu_memory(main, torch.mps.recommended_max_memory(), torch.mps.current_allocated_memory())
        return Memory(found.total, min(found.available + kept, found.total))

    def peak_bytes(self) -> int:
        if self.is_emulated:
            return super().peak_bytes()
        import torch

        return peak_rss() + torch.mps.driver_allocated_memory()  # a process does not count what its GPU holds

    def scratch_bytes(
        self, model: Recording, ctx: int, codecs: tuple[KVCodec, ...], threads: int, sequences: int
    ) -> int:
        return arena_bytes(model, ctx, codecs, sequences, backend=self.name, coded=False)

    def limit_probe(self, threads: int) -> LimitProbe:
        return super().limit_probe(threads) if self.is_emulated else TorchLimitProbe(self.device, self.wait)

    @property
    def wait(self) -> Callable[[], None]:
        """Returns when the device has done all it was asked for."""
        import torch

        return (lambda: None) if self.is_emulated else torch.mps.synchronize

    def layout(self, dense_bytes: int, budget: int, threads: int) -> Layout:
        from localrun.backends.gpu.layouts import MetalLayout

        return MetalLayout()

    def make_executor(self, request: ExecutorRequest) -> Executor:
        from localrun.backends.gpu.executor import GpuExecutor
        from localrun.backends.metal.translator import MetalTranslator

        return GpuExecutor(MetalTranslator, self.kernel_device, request)
