"""Layers with a state at the sizes of real models: what the reference computes, to the bit however a text is cut."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from localrun_testing.cache_engine import native_layout, packed_model
from localrun_testing.oracle import difference
from localrun_testing.small_model import FULL, reference_executor, small_model, text
from localrun_testing.stepper import RunnerStepper, native_executor, random_chunks
from torch import Tensor

from localrun.engine.runner import Runner
from localrun.model.config import RecurrentMixer
from localrun.model.decoder import Model
from localrun.model.delta_net import DeltaNet
from localrun.model.mamba2 import Mamba2
from localrun.model.short_conv import GatedShortConv

N_TOKENS, N_BLOCKS = 140, 4
MIXERS: dict[str, RecurrentMixer] = {
    "Qwen3.5 9B": DeltaNet(16, 32, 128, 128, taps=4, eps=1e-6, tiled=True),
    "Qwen3-Next": DeltaNet(16, 32, 128, 128, taps=4, eps=1e-6, tiled=False),
    "LFM2 1.2B": GatedShortConv(2048, taps=3),
    "a convolution of odd sizes": GatedShortConv(1109, taps=7),
    "Granite 4 H Tiny": Mamba2(48, 64, n_groups=1, state_dim=128, taps=4, eps=1e-5),
    "Granite 4 H 350M": Mamba2(48, 32, n_groups=1, state_dim=128, taps=4, eps=1e-5),
    "Nemotron Nano 9B": Mamba2(16, 80, n_groups=8, state_dim=128, taps=4, eps=1e-5),  # an eighth of its heads
    "Mamba-2 of eight groups": Mamba2(24, 64, n_groups=8, state_dim=34, taps=2, eps=1e-5),
}


@cache
def case(name: str) -> tuple[Model, Tensor]:
    """A model, and what the reference computes: the same for every instruction set."""
    layer = replace(FULL, kind="recurrent", rope=None, mixer=MIXERS[name])
    model = small_model((layer, FULL, layer))
    runner = Runner(model.config, reference_executor(model, N_BLOCKS, "f32"))
    return model, RunnerStepper(runner, N_BLOCKS).logits(text(N_TOKENS))


def on_the_library(model: Model) -> RunnerStepper:
    packed = packed_model(model, native_layout())
    executor = native_executor(packed, native_layout(), N_BLOCKS, "f32", ctx=256)
    return RunnerStepper(Runner(model.config, executor), N_BLOCKS)


@pytest.mark.parametrize("name", MIXERS)
def test_states_of_real_sizes(isa: str, name: str) -> None:
    (model, expected), ids = case(name), text(N_TOKENS)
    native = on_the_library(model)
    logits = native.logits(ids)
    found = difference(logits, expected)
    assert found.nmse < 1e-9, found
    for chunks in ([1] * N_TOKENS, random_chunks(N_TOKENS, seed=2), [63, 1, 65, N_TOKENS - 129]):
        assert torch.equal(native.logits(ids, chunks), logits)
