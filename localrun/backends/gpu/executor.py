"""A model on a GPU: its program beside the cache that the reference keeps in the device's memory."""

from localrun.backends.executor import ExecutorRequest
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.program import GpuProgram
from localrun.backends.gpu.translator import Translator
from localrun.backends.reference.executor import TorchExecutor, pool_of


class GpuExecutor(TorchExecutor[GpuProgram]):
    """One model on one GPU."""

    def __init__(self, translator: type[Translator], kernels: Device, request: ExecutorRequest, span: int = 0) -> None:
        """`span`: tokens that prompts are read in bulk by, where the model can be."""
        pool = pool_of(request.cache, kernels.torch_device)
        program = GpuProgram(translator, kernels, request.instructions, pool, span)
        super().__init__(program, pool, kernels.torch_device)

    @property
    def bulk_span(self) -> int:
        return self.program.span
