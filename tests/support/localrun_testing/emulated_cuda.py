"""Models on the emulated GPU."""

from functools import cache
from pathlib import Path

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.engine.runner import Runner, cache_layers
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.stepper import RunnerStepper


@cache
def emulated_device(arch: int = 80) -> EmulatedDevice:
    """One a process: kernels are loaded once."""
    return EmulatedDevice(arch)


class CudaStepper(RunnerStepper):
    """A model file on the emulated GPU, one step at a time.

    `span`: tokens that texts are read in bulk by. `rolls`: with the window of a rolling context.
    """

    def __init__(self, path: Path, ctx: int = 256, codec: str = "f16", span: int = 0, rolls: bool = False) -> None:
        source = open_safetensors(path) if path.is_dir() else open_gguf(path)
        config = read_config(source).for_context(ctx)
        self.config = config.for_window(ctx - BLOCK_TOKENS) if rolls else config
        device, n_blocks = emulated_device(), -(-ctx // BLOCK_TOKENS) + 3
        self.model = load_model(source, GpuLayout(), device.torch_device, self.config)
        layers = cache_layers(self.config)
        plan, n_groups = KVPlan.uniform(KV_CODECS[codec], len(layers)), 1 + max(layer.group for layer in layers)
        counts = [n_blocks] * n_groups
        request = ExecutorRequest.of(self.model.forward, CachePlan(layers, plan, counts, counts))
        self.has_rings = not KV_CODECS[codec].native
        self.executor = GpuExecutor(CudaTranslator, device, request, span)
        super().__init__(Runner(self.config, self.executor), n_blocks)
