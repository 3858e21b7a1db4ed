"""Counts of launches and of operations of torch in a decode step, beside those that are really asked for."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from localrun_testing import tiny_models
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.kv_cases import Blocks, reference_for, sizes, step
from localrun_testing.latent_cases import LatentCase
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.stepper import Stepper
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.decode_cost import numbers_held, numbers_read
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu import decode_cost as module
from localrun.backends.gpu.decode_cost import decode_cost
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.reference.ops import ReferenceOps
from localrun.base.resources import resource
from localrun.engine.runner import RowSpan, Runner, cache_layers
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.model.recording import record_shapes
from localrun.ops.instructions import Moe
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import Packed

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
VIEWS = {
    *("view", "slice", "select", "unsqueeze", "transpose", "t", "expand", "split", "split_with_sizes", "alias"),
    *("detach", "permute", "_unsafe_view", "squeeze", "unbind", "chunk", "lift_fresh", "_reshape_alias", "as_strided"),
}


class Counting(TorchDispatchMode):
    """Counts operations, and the bytes of all that they read and write."""

    n_ops, n_bytes = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.__name__.partition(".")[0] not in VIEWS:
            self.n_ops += 1
            self.n_bytes += sum(x.nbytes for x in tree_leaves((args, kwargs, result)) if isinstance(x, torch.Tensor))
        return result


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[list[int]]:
    """Operations of torch that every call of one instruction of the reference asks for."""
    compute, found = getattr(ReferenceOps, name), list[int]()

    def call(self: ReferenceOps, op: Any) -> Any:
        with Counting() as count:  # type: ignore[no-untyped-call]
            result = compute(self, op)
        found.append(count.n_ops)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(ReferenceOps, name, call)
        yield found


@pytest.mark.parametrize("model", ["qwen3-moe", "gpt-oss"])
def test_operations_of_torch_in_a_step_of_one_row(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_models.save(model, tmp_path / model)
    one, ids = Stepper(path, codec="f16"), random.Random(0).choices(range(tiny_models.VOCAB_SIZE), k=70)
    one.logits(ids[:-1])
    with counted(monkeypatch, "moe") as found:
        one.step(ids[-1:], len(ids) - 1)
    instructions = [each.instruction for each in record_shapes(read_config(open_safetensors(path))).instructions]
    expected = [
        module.ROUTER_OPS + op.router.routing.n_used * module.EXPERT_OPS  # whose matrices, of floats, need no decoding
        for op in instructions
        if isinstance(op, Moe)
    ]
    assert len(found) == len(expected) > 0
    assert sum(found) == pytest.approx(sum(expected), rel=0.25)


def test_operations_of_torch_in_latent_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    case = LatentCase(n_tokens=130)
    executor = reference_for(case)
    blocks = Blocks.of(case, executor, *sizes(case), seed=0, poison=False)
    step(case, executor, blocks.view(0, 129), 0, 129)
    found = {}
    for name in ("head_linear", "latent_append", "attention"):
        with counted(monkeypatch, name) as found[name]:
            step(case, executor, blocks.view(129, 130), 129, 1)
    assert found["head_linear"] == pytest.approx([module.HEAD_OPS] * 2, rel=0.25)
    assert found["latent_append"] == pytest.approx([module.LATENT_OPS], rel=0.25)
    assert found["attention"] == pytest.approx(
        [module.ATTENTION_OPS + 3 * module.BLOCK_OPS], rel=0.3
    )  # values take none


def test_decoding_a_matrix() -> None:
    layout, shape = GpuLayout(), (4096, 512)
    packed = Packed(layout, "Q4_K", *shape, (torch.zeros(layout.nbytes("Q4_K", *shape), dtype=torch.uint8),))
    with Counting() as count:  # type: ignore[no-untyped-call]
        packed.unpack(512, 512)
    assert count.n_ops == pytest.approx(module.DECODE_OPS, rel=0.25)
    assert count.n_bytes / 512**2 == pytest.approx(module.DECODE_BYTES, rel=0.25)


class CountingDevice(EmulatedDevice):
    """A device whose kernels do nothing but count, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.launched = Counter[str]()

    def kernel(self, file: str, name: str, **defines: int) -> Any:
        return SimpleNamespace(bind=lambda *_, **__: lambda: self.launched.update([name]))

    def record(self, launches: Sequence[Launch]) -> Any:
        return None


def decoded(source: TensorSource, codec: str = "f16") -> tuple[CountingDevice, GpuExecutor, ModelConfig]:
    """A step of one row on a device that counts."""
    config, device = read_config(source), CountingDevice()
    loaded, layers = load_model(source, GpuLayout(), device.torch_device, config), cache_layers(config)
    plan, n_groups = KVPlan.uniform(KV_CODECS[codec], len(layers)), 1 + max(layer.group for layer in layers)
    rings = [0 if KV_CODECS[codec].native else 2] * n_groups
    request = ExecutorRequest.of(loaded.forward, CachePlan(layers, plan, [2] * n_groups, rings))
    executor = GpuExecutor(CudaTranslator, device, request)
    view = sequence_input([(0,) * n_groups], 1, n_groups)
    runner = Runner(config, executor)
    runner.begin(runner.step_input([RowSpan([5], 0)], [view], [0], [None]))
    return device, executor, config


@pytest.mark.parametrize("model", ["", "qwen2-window", "olmo3", "qwen3-moe", "qwen2-moe", "qwen3.5", "granite-hybrid"])
def test_launches_of_a_step_of_one_row(model: str, tmp_path: Path) -> None:
    """Of codes, whose activations are quantised by launches of their own, and of floats; the built-in model first."""
    source = open_safetensors(tiny_models.save(model, tmp_path / model)) if model else open_gguf(BUILTIN)
    device, executor, config = decoded(source)
    cost = decode_cost(record_shapes(config), "cuda", has_graphs=True)
    assert (cost.torch_ops, executor.program.by_torch, cost.is_graph) == (0, set(), True)
    assert cost.is_ahead == executor.runs_ahead
    assert cost.launches == pytest.approx(device.launched.total(), rel=0.25)


@pytest.mark.parametrize("codec", ["f16", "q8"])
def test_attention_turns_back_and_quantises_as_it_merges(codec: str) -> None:
    """So do gates: rows of the logits are all that a launch of its own quantises."""
    device, _, config = decoded(open_gguf(BUILTIN), codec)
    assert device.launched["attend_merge"] == config.n_layers
    assert device.launched["quantize"] == 1
    assert device.launched["linear_gate"] == config.n_layers
    assert not device.launched["rotate_heads"]


def test_a_mixture_reads_the_experts_that_a_row_goes_through(tmp_path: Path) -> None:
    model = record_shapes(read_config(open_safetensors(tiny_models.save("qwen3-moe", tmp_path / "model"))))
    (mixtures,) = {len([1 for each in model.instructions if isinstance(each.instruction, Moe)])}
    op = next(each.instruction for each in model.instructions if isinstance(each.instruction, Moe))
    one = sum(weight.packed.n_rows * weight.packed.n_cols for weight in (*op.experts.widening, op.experts.down))
    unused = 1 - op.router.routing.n_used / op.router.n_experts
    assert numbers_held(model) - numbers_read(model) == pytest.approx(mixtures * one * unused)
