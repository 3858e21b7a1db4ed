"""A model on a GPU: its program beside the cache that the reference keeps in the device's memory."""

from collections.abc import Sequence

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.program import GpuProgram
from localrun.backends.gpu.translator import Translator
from localrun.backends.reference.executor import TorchExecutor
from localrun.backends.reference.pool import KVPool
from localrun.ops.interface import CacheLayer
from localrun.ops.kv import KVPlan
from localrun.ops.program import Forward


class GpuExecutor(TorchExecutor[GpuProgram]):
    """One model on one GPU."""

    def __init__(
        self,
        translator: type[Translator],
        kernels: Device,
        forward: Forward,
        layers: Sequence[CacheLayer],
        plan: KVPlan,
        n_blocks: Sequence[int],
        ring_blocks: Sequence[int],
        span: int = 0,
    ) -> None:
        """`n_blocks` and `ring_blocks`: coded and 16-bit blocks of every group. `span`: tokens that prompts are read in
        bulk by, where the model can be."""
        pool = KVPool(layers, plan, n_blocks, ring_blocks, kernels.torch_device)
        super().__init__(GpuProgram(translator, kernels, forward, pool, span), pool, kernels.torch_device)

    @property
    def bulk_span(self) -> int:
        return self.program.span
