"""NVIDIA GPUs: kernels of our own for what most models do, the reference operations on the device for the rest.

With LOCALRUN_EMULATE_CUDA=1 the same kernels run on the processor, to be tested where there is no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from localrun.backends.cuda import availability
from localrun.backends.cuda.bulk import memory_bytes, span_of
from localrun.backends.cuda.coverage import left_to_torch
from localrun.backends.cuda.driver import Gpu, free_now
from localrun.backends.cuda.limits import DriverLimitProbe
from localrun.backends.gpu.measured import proven
from localrun.backends.gpu.scratch import arena_bytes
from localrun.backends.gpu.weight_layouts import layout_of
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import LocalrunError
from localrun.base.machine import Memory
from localrun.model.config import ModelConfig
from localrun.ops.kv import KVCodec, KVPlan
from localrun.ops.largest_step import max_rows
from localrun.ops.numerics import NUMERICS_VERSION

if TYPE_CHECKING:
    from localrun.backends.executor import Executor
    from localrun.backends.gpu.device import Device
    from localrun.backends.limits import LimitProbe
    from localrun.ops.interface import CacheLayer
    from localrun.ops.layouts import Layout
    from localrun.ops.program import Forward

CONTEXT_BYTES = 600 << 20  # that CUDA, torch and its libraries take on a device before anything is loaded


class CudaBackend(ReferenceBackend):
    """The first GPU that CUDA names."""

    name = "cuda"
    note = ""
    program_bytes = CONTEXT_BYTES
    growth_bytes = 64 << 20  # kernels that torch loads when they are first used
    measures_limits = True

    @property
    def torch_name(self) -> str:
        return "cpu" if availability.is_emulated() else "cuda"

    @property
    def gpu(self) -> Gpu:
        found = availability.gpu()
        assert isinstance(found, Gpu), "it has been asked for"
        return found

    @property
    def chip(self) -> str:
        return "emulated" if availability.is_emulated() else f"{self.gpu.name} sm_{self.gpu.arch}"

    @property
    def arch(self) -> int:
        """As in sm_90: 90; known without a context."""
        return self.kernel_device.arch if availability.is_emulated() else self.gpu.arch

    @cached_property
    def kernel_device(self) -> Device:
        """The seam to the GPU, or to what stands in for it."""
        if availability.is_emulated():
            from localrun.backends.cuda.emulated_device import EmulatedDevice

            return EmulatedDevice()
        from localrun.backends.cuda.cuda_device import CudaDevice

        return CudaDevice()

    @property
    def kernels(self) -> frozenset[str]:
        from localrun.backends.gpu.translator import Translator
        from localrun.ops.instructions import INSTRUCTIONS

        return frozenset(op.name for op in INSTRUCTIONS if hasattr(Translator, op.name)) | {"logits"}

    @property
    def rounding(self) -> str:
        import torch

        from localrun.backends.cuda.source import kernels_hash

        return f"cuda {self.chip} {torch.__version__} {kernels_hash()} bulk {span_of(self.arch)} {NUMERICS_VERSION}"

    def why_unavailable(self) -> str:
        return availability.why_unavailable()

    def fault(self) -> str:
        """A GPU that is there and not used."""
        found = availability.gpu()
        return f"{found.name} is not used" if isinstance(found, Gpu) and self.why_unavailable() else ""

    def trial(self) -> str:
        if availability.is_emulated():
            return ""  # that is what the emulator is held against
        from localrun.backends.cuda.self_test import why_not

        try:
            return why_not(self.kernel_device, " ".join((self.chip, *self.versions().values())))
        except LocalrunError as error:
            return f"{error.message}; {error.hint}"

    def summary(self) -> str:
        if availability.is_emulated():
            return "emulated on this processor, for tests"
        return f"{self.chip}; {proven(self.gpu.name)}"

    def details(self) -> dict[str, Any]:
        found = availability.gpu()
        if not isinstance(found, Gpu):
            return {"device": None, "arch": None, "driver_cuda": None}
        return {"device": found.name, "arch": f"sm_{found.arch}", "driver_cuda": availability.version(found.cuda)}

    def versions(self) -> dict[str, str]:
        """Of all that decides what kernels become."""
        import torch

        from localrun.backends.cuda.compiler import nvrtc_version

        if availability.is_emulated():
            return {"torch": torch.__version__}
        driver = availability.version(self.gpu.cuda)
        return {"driver_cuda": driver, "torch": torch.__version__, "nvrtc": nvrtc_version()}

    def without_kernels(self, config: ModelConfig, codecs: Sequence[KVCodec]) -> Sequence[str]:
        """What the reference operations compute on the device, with weights that are decoded as they are used."""
        parts = (left_to_torch(spec, codec) for spec, codec in zip(config.layers, codecs, strict=True))
        return [*dict.fromkeys(chain.from_iterable(parts))]

    def memory(self, main: Memory) -> Memory:
        """Where torch runs already, what it keeps for later use of this process counts as free."""
        if availability.is_emulated():
            return main
        if (torch := sys.modules.get("torch")) is None or not torch.cuda.is_initialized():
            free = free_now()
            return Memory(self.gpu.total, self.gpu.total if free is None else free)
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        free, total = torch.cuda.mem_get_info(self.device)
        return Memory(int(total), int(free) + kept)

    def peak_bytes(self) -> int:
        if availability.is_emulated():
            return super().peak_bytes()
        import torch

        return torch.cuda.max_memory_reserved(self.device)

    def layout_name(self, qtype: str) -> str:
        return layout_of(qtype).name

    def matrix_bytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return layout_of(qtype).nbytes(n_rows, n_cols)

    def scratch_bytes(self, config: ModelConfig, ctx: int, codec: KVCodec, threads: int, sequences: int) -> int:
        by_torch = any(left_to_torch(spec, spec.cache.codec(codec)) for spec in config.layers)
        span = 0 if by_torch else span_of(self.arch)
        bulk = memory_bytes(config, max_rows(span), span) if span else 0
        return bulk + arena_bytes(config, ctx, codec, sequences, coded=True, all_codecs=False, span=span)

    def limit_probe(self, threads: int) -> LimitProbe:
        return super().limit_probe(threads) if availability.is_emulated() else DriverLimitProbe(self.gpu)

    def layout(self, dense_bytes: int, budget: int, threads: int) -> Layout:
        from localrun.backends.gpu.layouts import GpuLayout

        return GpuLayout()

    def make_executor(
        self,
        forward: Forward,
        layers: Sequence[CacheLayer],
        plan: KVPlan,
        blocks: Sequence[int],
        ring_blocks: Sequence[int],
    ) -> Executor:
        from localrun.backends.cuda.translator import CudaTranslator
        from localrun.backends.gpu.executor import GpuExecutor

        device, span = self.kernel_device, span_of(self.arch)
        return GpuExecutor(CudaTranslator, device, forward, layers, plan, blocks, ring_blocks, span)
