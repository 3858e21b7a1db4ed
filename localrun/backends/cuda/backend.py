"""NVIDIA GPUs: kernels of our own for what most models do, the reference operations on the device for the rest.

With LOCALRUN_EMULATE_CUDA=1 the same kernels run on the processor, to be tested where there is no GPU.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from localrun.backends.cuda import availability
from localrun.backends.cuda.bulk import memory_bytes, span_of
from localrun.backends.cuda.driver import Gpu, all_gpus, driver_version, free_now, spared_bytes
from localrun.backends.cuda.limits import DriverLimitProbe
from localrun.backends.gpu.backend import GpuBackend
from localrun.backends.gpu.emulation import emulated_device
from localrun.backends.gpu.limits import TorchLimitProbe
from localrun.backends.gpu.scratch import arena_bytes
from localrun.backends.gpu.supports import reads_in_bulk
from localrun.base.errors import LocalrunError
from localrun.base.machine import Memory
from localrun.base.units import gib
from localrun.ops.kv import KVCodec
from localrun.ops.largest_step import max_rows
from localrun.ops.types import NUMERICS_VERSION

if TYPE_CHECKING:
    from localrun.backends.executor import Executor, ExecutorRequest
    from localrun.backends.gpu.device import Device
    from localrun.backends.limits import LimitProbe
    from localrun.ops.layouts import Layout
    from localrun.ops.recording import Recording


class CudaBackend(GpuBackend):
    """The GPU of this process: the first that CUDA names, or the one that was chosen."""

    name = "cuda"

    @property
    def is_emulated(self) -> bool:
        return availability.is_emulated()

    @property
    def torch_name(self) -> str:
        return "cpu" if self.is_emulated else f"cuda:{availability.chosen}"

    @property
    def gpu(self) -> Gpu:
        found = availability.gpu()
        assert isinstance(found, Gpu), "it has been asked for"
        return found

    @property
    def gpu_name(self) -> str:
        return self.gpu.name

    @property
    def chip(self) -> str:
        return "emulated" if self.is_emulated else f"{self.gpu.name} sm_{self.gpu.arch}"

    @property
    def arch(self) -> int:
        """Compute capability as a number: 90 for sm_90; known without a context."""
        return self.kernel_device.arch if self.is_emulated else self.gpu.arch

    @cached_property
    def kernel_device(self) -> Device:
        """The seam to the GPU or its emulator."""
        if self.is_emulated:
            device: Device = emulated_device("cuda")
            return device
        from localrun.backends.cuda.cuda_device import CudaDevice

        availability.is_in_use = True
        return CudaDevice(availability.chosen)

    @property
    def has_graphs(self) -> bool:  # type: ignore[override]  # read-only here
        """Unless the self-test has found otherwise in this process."""
        found = self.__dict__.get("kernel_device")
        return found is None or bool(found.has_graphs)

    @property
    def rounding(self) -> str:
        """Compilers of kernels count, that of the driver for PTX, and the libraries that read in bulk."""
        from localrun.backends.cuda.source import kernels_hash

        versions = " ".join(self.versions().values())
        return f"cuda {self.chip} {versions} {kernels_hash()} bulk {span_of(self.arch)} {NUMERICS_VERSION}"

    def why_unavailable(self) -> str:
        return availability.why_unavailable()

    def degraded_reason(self) -> str:
        """A GPU that is there and not used."""
        found = availability.gpu()
        return f"{found.name} is not used" if isinstance(found, Gpu) and self.why_unavailable() else ""

    def self_test(self) -> str:
        if self.is_emulated:
            return ""  # that is what the emulator is held against
        from localrun.backends.cuda.self_test import why_not

        try:
            return why_not(self.kernel_device, " ".join((self.chip, *self.versions().values())))
        except LocalrunError as error:
            return f"{error.message}; {error.hint}"

    def summary(self) -> str:
        gpus = [] if self.is_emulated else all_gpus()
        others = ", ".join(f"{number} {gpu.name} ({gib(gpu.total)})" for number, gpu in enumerate(gpus))
        alone = "" if self.has_graphs else "; without graphs: kernels are launched one by one"
        return super().summary() + alone + (f"; --device N takes one of {others}" if len(gpus) > 1 else "")

    def details(self) -> dict[str, Any]:
        found = availability.gpu()
        if not isinstance(found, Gpu):
            return {"device": None, "arch": None, "driver": None, "driver_cuda": None}
        driver = {"driver": driver_version() or None, "driver_cuda": availability.version(found.cuda)}
        return {"device": found.name, "arch": compiled_for(found), **driver}

    def versions(self) -> dict[str, str]:
        """Versions of everything that determines compiled kernels, and what they give."""
        import torch

        from localrun.backends.cuda.compiler import nvrtc_version

        if self.is_emulated:
            return {"torch": torch.__version__}
        driver = {"driver": driver_version(), "driver_cuda": availability.version(self.gpu.cuda)}
        return {**driver, "torch": torch.__version__, "nvrtc": nvrtc_version()}

    def memory(self, main: Memory) -> Memory:
        """Where torch runs already, what it keeps for later use of this process counts as free."""
        if self.is_emulated:
            return main
        if (torch := sys.modules.get("torch")) is None or not torch.cuda.is_initialized():
            free, total = free_now(availability.chosen), self.gpu.total
            return Memory(total, max(0, (total if free is None else free) - spared_bytes(total)))
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        free, total = torch.cuda.mem_get_info(self.device)
        return Memory(int(total), max(0, int(free) + kept - spared_bytes(int(total))))

    def peak_bytes(self) -> int:
        if self.is_emulated:
            return super().peak_bytes()
        import torch

        return torch.cuda.max_memory_reserved(self.device)

    def scratch_bytes(
        self, model: Recording, ctx: int, codecs: tuple[KVCodec, ...], threads: int, sequences: int
    ) -> int:
        span = span_of(self.arch) if reads_in_bulk(model, self.name) else 0
        bulk = memory_bytes(model, max_rows(span), span) if span else 0
        return bulk + arena_bytes(model, ctx, codecs, sequences, backend=self.name, coded=True, span=span)

    def limit_probe(self, threads: int) -> LimitProbe:
        if self.is_emulated:
            return super().limit_probe(threads)
        if self.gpu.read_bytes:
            return DriverLimitProbe(self.gpu)
        import torch  # a board that shares main memory names no clock of its own

        return TorchLimitProbe(self.device, torch.cuda.synchronize)

    def layout(self, dense_bytes: int, budget: int, threads: int) -> Layout:
        from localrun.backends.gpu.layouts import GpuLayout

        return GpuLayout()

    def make_executor(self, request: ExecutorRequest) -> Executor:
        from localrun.backends.cuda.translator import CudaTranslator
        from localrun.backends.gpu.executor import GpuExecutor

        return GpuExecutor(CudaTranslator, self.kernel_device, request, span_of(self.arch))


def compiled_for(gpu: Gpu) -> str:
    """The generation of a GPU, and where NVRTC does not know that yet, the one that its kernels are compiled for."""
    from localrun.backends.cuda.compiler import known_arch

    known = known_arch(gpu.arch)
    return f"sm_{gpu.arch}" if known == gpu.arch else f"sm_{gpu.arch}, by PTX of sm_{known}"
