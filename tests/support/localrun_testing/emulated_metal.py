"""Models on the emulated Apple GPU."""

from functools import cache
from pathlib import Path

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import MetalLayout
from localrun.backends.metal.device import MetalDevice
from localrun.backends.metal.translator import MetalTranslator
from localrun.engine.runner import Runner, cache_layers
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun_testing.emulator.metal import emulated_device
from localrun_testing.stepper import RunnerStepper


@cache
def metal_device() -> MetalDevice:
    """One a process: kernels are loaded once."""
    return emulated_device()


class MetalStepper(RunnerStepper):
    """A model file on the emulated Apple GPU, one step at a time. `rolls`: with the window of a rolling context."""

    def __init__(self, path: Path, ctx: int = 256, codec: str = "f16", rolls: bool = False) -> None:
        source = open_safetensors(path) if path.is_dir() else open_gguf(path)
        config = read_config(source).for_context(ctx)
        self.config = config.for_window(ctx - BLOCK_TOKENS) if rolls else config
        device, n_blocks = metal_device(), -(-ctx // BLOCK_TOKENS) + 3
        self.model = load_model(source, MetalLayout(), device.torch_device, self.config)
        layers = cache_layers(self.config)
        plan, n_groups = KVPlan.uniform(KV_CODECS[codec], len(layers)), 1 + max(layer.group for layer in layers)
        counts = [n_blocks] * n_groups
        request = ExecutorRequest.of(self.model.forward, CachePlan(layers, plan, counts, counts))
        self.executor = GpuExecutor(MetalTranslator, device, request)
        super().__init__(Runner(self.config, self.executor), n_blocks)
