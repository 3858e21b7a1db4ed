"""The backend that `auto` takes, on cards that are not there: never one where torch computes and the CPU is faster."""

from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing import tiny_models
from localrun_testing.pretend_gpu import PretendedBackend, pretended_gpu
from localrun_testing.small_model import FULL, small_model

from localrun.backends.cpu.library import load_library
from localrun.backends.decode_cost import DecodeCost
from localrun.backends.gpu.decode_cost import decode_cost
from localrun.backends.gpu.supports import MIXTURES, left_to_torch
from localrun.backends.registry import BACKENDS
from localrun.base.machine import Memory
from localrun.base.request import BackendName, LoadOptions
from localrun.client.local import LocalClient
from localrun.fit import fastest as module
from localrun.fit.fastest import DecodeTimes, fastest_backend, why_not_usual, why_slower
from localrun.fit.precisions import bits_of
from localrun.fit.rates import Rates
from localrun.model.config import Mixture
from localrun.model.recording import record_shapes
from localrun.ops.recording import Recording
from localrun.ops.types import Routing
from tools.write_auto_docs import (
    CARDS,
    CPU_RATES,
    PretendedCuda,
    choice,
    models,
    precision_of,
    shape_named,
)

DENSE = replace(FULL, head_dim=64)
MIXED = replace(DENSE, mixture=Mixture(640, Routing(2)))  # more experts than kernels choose among
GPU_RATES = Rates(1e12, 1e14)

needs_library = pytest.mark.skipif(load_library() is None, reason="no native library")


def test_no_choice_would_be_faster() -> None:
    """Of any card: all cards of a model one after the other, for which it is recorded once."""
    for name in models():
        model, bits = record_shapes(shape_named(name).config), bits_of(precision_of(name))
        for card in CARDS:
            taken, backend = choice(card, name), PretendedCuda(card)
            if taken.plan is None:
                continue
            times = DecodeTimes(backend, backend.rates, CPU_RATES, bits)
            seconds, where = taken.on_gpu if taken.takes_gpu else taken.on_cpu, f"{name} on {card.name}"
            assert seconds <= min(times.on_gpu(model), times.on_cpu(model)), where
            assert not taken.parts or not taken.takes_gpu or taken.on_gpu <= taken.on_cpu, f"{where}: torch by surprise"


class Card(PretendedBackend):
    """The reference on a pretended GPU, which says of itself what the CUDA backend says."""

    def without_kernels(self, model: Recording) -> tuple[str, ...]:
        return left_to_torch(model, "cuda")

    def decode_cost(self, model: Recording) -> DecodeCost:
        return decode_cost(model, "cuda", has_graphs=True)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    monkeypatch.setattr(module, "machine_rates", lambda backend: GPU_RATES if backend.name == "cuda" else CPU_RATES)
    return Card()


def recorded(*layers) -> Recording:  # type: ignore[no-untyped-def]
    return record_shapes(replace(small_model((FULL,)).config, layers=layers))


@needs_library
def test_what_torch_computes_is_computed_by_the_cpu(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu(), monkeypatch.context() as patch:
        patch.setitem(BACKENDS, "cuda", card)
        assert fastest_backend(recorded(DENSE, DENSE)) is card
        assert not why_not_usual(recorded(DENSE, DENSE))
        assert fastest_backend(recorded(DENSE, MIXED)).name == "cpu"
        said = why_not_usual(recorded(DENSE, MIXED))
    assert said.startswith(f"the CPU computes this model: on the GPU torch would compute {MIXTURES}, for which")
    assert said.endswith("--backend cuda uses the GPU all the same")


@needs_library
def test_a_gpu_is_taken_where_it_is_faster_than_the_cpu_all_the_same(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "machine_rates", lambda backend: GPU_RATES if backend.name == "cuda" else Rates(1e4, 1))
    assert not why_slower(card, recorded(DENSE, MIXED))


@needs_library
@pytest.mark.parametrize("idle", [True, False])
def test_a_cpu_that_was_busy_when_it_was_measured_is_not_taken_for_slow(
    idle: bool, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"cuda": GPU_RATES, "cpu": Rates(1e4, 1, idle=idle)}
    monkeypatch.setattr(module, "machine_rates", lambda backend: rates[backend.name])
    assert bool(why_slower(card, recorded(DENSE, MIXED))) != idle


@needs_library
def test_a_model_that_main_memory_does_not_hold_stays_on_the_gpu(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "memory", lambda: Memory(1 << 20, 1000))
    assert not why_slower(card, recorded(DENSE, MIXED))


@needs_library
def test_an_emulated_gpu_computes_what_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_EMULATE_CUDA", "1")
    assert not why_slower(BACKENDS["cuda"], recorded(DENSE, MIXED))


@needs_library
@pytest.mark.parametrize(("wish", "taken"), [("auto", "cpu"), ("cuda", "cuda")])
def test_a_load_says_why(
    wish: BackendName, taken: str, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_models.save("mixtral", tmp_path / "model")  # whose heads no kernels have
    with pretended_gpu(), monkeypatch.context() as patch:
        patch.setitem(BACKENDS, "cuda", card)
        with LocalClient(LoadOptions(path, backend=wish, ctx=128)) as one:
            assert one.info.backend == taken
            told = [note for note in one.info.notes if "the CPU computes this model" in note]
            assert len(told) == (taken == "cpu")
