"""Whole models on the units of Arm, by an emulator: what transformers computes, in steps of any size."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.instruction_sets import emulated, native
from localrun_testing.oracle import difference, token_ids
from localrun_testing.replay import replay
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.library import NativeLibrary

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("emulated Arm models")]  # its library is built once

IDS = token_ids(80, VOCAB_SIZE)
MODELS = (  # between them every kernel
    "llama",
    "gpt-oss",
    "lfm2-moe",
    "qwen3.5",
    "granite-hybrid",
    "nemotron-h-moe",
    "gemma4",
    "gemma4-e2b",
    "gemma4-moe",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return emulated(tmp_path_factory.mktemp("arm"), "neon;i8mm", "replay_driver.cpp")


@pytest.mark.parametrize("isa", ["neon", "i8mm"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_on_arm(
    name: str,
    isa: str,
    driver: list[str],
    library: NativeLibrary,
    tiny_folder: Callable[..., Path],
    reference: Callable[..., torch.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Weights are packed here, and steps computed there."""
    if "avx2" in native():
        library.use_isa("avx2")  # which reads the forms of activations that Arm's units read
    stepper = Stepper(tiny_folder(name), native_threads=2)
    executor = stepper.runner.executor
    assert isinstance(executor, CpuExecutor)
    monkeypatch.setattr(executor.calls, "program_run", lambda _, step: replay([*driver, isa], executor, step))
    whole = stepper.logits(IDS)
    assert difference(whole, reference(name, "safetensors", IDS)).within(max_abs=1e-4, nmse=1e-9)
    assert torch.equal(stepper.logits(IDS, [1, 65, 1, 13]), whole)
