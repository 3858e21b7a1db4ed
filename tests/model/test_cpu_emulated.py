"""Whole models on the units of Arm, by an emulator: what transformers computes, in steps of any size."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing import cross
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


@pytest.fixture(scope="module")
def driver_of_clang(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return cross.emulated(tmp_path_factory.mktemp("clang"), cross.TARGETS["manylinux_aarch64"], "replay_driver.cpp")


Check = Callable[[str, list[str]], None]


@pytest.fixture
def check(
    library: NativeLibrary,
    tiny_folder: Callable[..., Path],
    reference: Callable[..., torch.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> Check:
    """Whether a command of a driver computes a model's logits. Weights are packed here, and steps computed there."""
    if "avx2" in native():
        library.use_isa("avx2")  # which reads the forms of activations that Arm's units read

    def check(name: str, command: list[str]) -> None:
        stepper = Stepper(tiny_folder(name), native_threads=2)
        executor = stepper.runner.executor
        assert isinstance(executor, CpuExecutor)
        monkeypatch.setattr(executor.calls, "program_run", lambda _, step: replay(command, executor, step))
        whole = stepper.logits(IDS)
        assert difference(whole, reference(name, "safetensors", IDS)).within(max_abs=1e-4, nmse=1e-9)
        assert torch.equal(stepper.logits(IDS, [1, 65, 1, 13]), whole)

    return check


@pytest.mark.parametrize("isa", ["neon", "i8mm"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_on_arm(name: str, isa: str, driver: list[str], check: Check) -> None:
    check(name, [*driver, isa])


@pytest.mark.parametrize(("name", "isa"), [(name, ("i8mm", "neon")[i % 2]) for i, name in enumerate(MODELS)])
def test_logits_of_what_clang_compiles_for_arm(name: str, isa: str, driver_of_clang: list[str], check: Check) -> None:
    """As for a Mac, whose compiler it is; by the flags of a wheel, as the other one for Linux."""
    check(name, [*driver_of_clang, isa])
