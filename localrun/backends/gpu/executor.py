"""A model on a GPU: its program beside the cache that the reference keeps in the device's memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from localrun.backends.executor import ExecutorRequest
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.lost_device import told_when_lost
from localrun.backends.gpu.program import GpuProgram
from localrun.backends.gpu.translator import Translator
from localrun.backends.reference.executor import TorchExecutor, pool_of
from localrun.base.device_figures import DeviceFigures
from localrun.base.errors import DeviceLostError

P = ParamSpec("P")
R = TypeVar("R")


def in_order(
    method: Callable[Concatenate[TorchExecutor[GpuProgram], P], R],
) -> Callable[Concatenate[GpuExecutor, P], R]:
    """The method, in the order of the device's steps, from whatever thread it is called. Raises DeviceLostError."""

    @wraps(method)
    def inside(self: GpuExecutor, /, *given: P.args, **named: P.kwargs) -> R:
        with told_when_lost(), self.kernels.steps():
            return method(self, *given, **named)

    return inside


class GpuExecutor(TorchExecutor[GpuProgram]):
    """One model on one GPU."""

    def __init__(self, translator: type[Translator], kernels: Device, request: ExecutorRequest, span: int = 0) -> None:
        """`span`: tokens that prompts are read in bulk by, where the model can be."""
        self.kernels = kernels
        with kernels.steps():
            pool = pool_of(request.cache, kernels.torch_device)
            program = GpuProgram(translator, kernels, request.instructions, pool, span)
        super().__init__(program, pool, kernels.torch_device)

    @property
    def bulk_span(self) -> int:
        return self.program.span

    @property
    def runs_ahead(self) -> bool:
        return self.program.runs_ahead

    @property
    def device_steps(self) -> DeviceFigures:
        return self.program.device_steps

    run = in_order(TorchExecutor.run)
    copy_block, copy_ring = in_order(TorchExecutor.copy_block), in_order(TorchExecutor.copy_ring)
    read_block, read_ring = in_order(TorchExecutor.read_block), in_order(TorchExecutor.read_ring)
    write_block, write_ring = in_order(TorchExecutor.write_block), in_order(TorchExecutor.write_ring)
    kv_export, kv_import = in_order(TorchExecutor.kv_export), in_order(TorchExecutor.kv_import)

    def close(self) -> None:
        with suppress(DeviceLostError), told_when_lost():
            self.kernels.finish()  # a step that was cut short may still read weights
        super().close()
