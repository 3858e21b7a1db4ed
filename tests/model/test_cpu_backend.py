"""Whole models on the native library: right by transformers and the reference, and bit-equal however they are run."""

import gc
import threading
import weakref
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.oracle import Difference, difference, token_ids
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE

from localrun.backends.cpu.bindings import CpuCalls, out_of_memory
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import NativeLibrary
from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.formats.detect import open_model_file
from localrun.model.load import load_model

IDS = token_ids(150, VOCAB_SIZE)
QUANT_TYPES = ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4")
RECURRENT = ("qwen3.5", "lfm2-moe", "granite-hybrid", "nemotron-h")
ISAS = ("generic", "avx2", "avxvnni", "avx512", "amx", "neon", "i8mm")


@pytest.mark.parametrize("name", TINY_MODELS)
def test_logits_match_transformers(
    name: str, tiny_folder: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    exact = Stepper(tiny_folder(name), native_threads=2)
    expected = reference(name, "safetensors", IDS)
    assert difference(exact.logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    half = Stepper(tiny_folder(name), codec="f16", native_threads=2).logits(IDS)
    errors = (half - expected).square().sum(-1) / expected.square().sum(-1)
    if any(spec.mixture for spec in exact.config.layers):  # where two experts are nearly equal, rounding chooses
        assert errors.median() < 5e-4
    else:
        assert difference(half, expected).nmse < 5e-4


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        *product(
            ["f32", "f16"],
            [
                "llama",
                "gemma3",
                "phi3",
                "olmo2",
                "qwen3-moe",
                "mixtral",
                "gpt-oss",
                "gemma4-e2b",
                "deepseek-v2-lite",
                "glm-4.7-flash",
                *RECURRENT,
            ],
        )
    ],
)
def test_chunks_threads_and_reruns_do_not_change_a_bit(name: str, codec: str, tiny_folder: Callable[..., Path]) -> None:
    model = Stepper(tiny_folder(name), codec=codec, native_threads=2)
    whole = model.logits(IDS)
    assert torch.equal(model.logits(IDS), whole)
    assert torch.equal(model.logits(IDS, [1] * len(IDS)), whole)
    assert torch.equal(model.logits(IDS, random_chunks(len(IDS), seed=3)), whole)
    for threads in (1, 3):
        assert torch.equal(Stepper(tiny_folder(name), codec=codec, native_threads=threads).logits(IDS), whole)


@pytest.mark.parametrize(("isa", "qtype"), [*product(ISAS, QUANT_TYPES)])
def test_every_instruction_set_stays_close_to_the_reference(
    qtype: str, isa: str, library: NativeLibrary, tiny_gguf: Callable[..., Path]
) -> None:
    if isa not in library.isas:
        pytest.skip(f"this machine lacks the instruction set {isa}")
    library.use_isa(isa)
    native = Stepper(tiny_gguf("llama-llama3-rope", qtype), codec="f16", native_threads=2).logits(IDS)
    assert close(native, Stepper(tiny_gguf("llama-llama3-rope", qtype), codec="f16").logits(IDS))


@pytest.mark.parametrize(
    ("isa", "name"),
    [
        *product(
            ISAS,
            [
                *RECURRENT,
                "qwen3.5-moe",
                "qwen3-next",
                "lfm2",
                "granite-hybrid-moe",
                "nemotron-h-moe",
                "granite-moe-shared",
                "qwen2-moe",
                "gpt-oss",
                "gemma",
                "gemma4",
                "gemma4-e2b",
                "gemma4-moe",
                "deepseek-v2-lite",
                "deepseek-v3",
            ],
        )
    ],
)
def test_layers_of_their_own_kind_on_every_instruction_set(
    name: str,
    isa: str,
    library: NativeLibrary,
    tiny_folder: Callable[..., Path],
    reference: Callable[..., torch.Tensor],
) -> None:
    if isa not in library.isas:
        pytest.skip(f"this machine lacks the instruction set {isa}")
    library.use_isa(isa)
    logits = Stepper(tiny_folder(name), native_threads=2).logits(IDS, [1, 70, *[1] * 9, 70])
    assert difference(logits, reference(name, "safetensors", IDS)).within(max_abs=1e-4, nmse=1e-9)


def test_the_executor_alone_keeps_the_weights_alive(tiny_folder: Callable[..., Path]) -> None:
    stepper = Stepper(tiny_folder("llama"), native_threads=1)
    weights = stepper.model.weights
    matrices = [
        weights.embed.packed,
        weights.output.packed,
        *(layer.down.packed for layer in weights.layers if layer.down),
    ]
    alive = [weakref.ref(plane) for matrix in matrices for plane in matrix.planes]
    del stepper.model, weights, matrices
    gc.collect()
    assert all(plane() is not None for plane in alive)
    assert stepper.logits(IDS).isfinite().all()


def test_memory_that_runs_out_is_said_to_be_for_the_weights(
    tiny_folder: Callable[..., Path], library: NativeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = CpuLayout(CpuCalls(library), 2)

    def refuse(n_bytes: int) -> int:
        raise out_of_memory(n_bytes)

    monkeypatch.setattr(layout.calls, "reserve", refuse)
    with pytest.raises(DoesNotFitError, match=r"while loading .* of weights") as caught:
        load_model(open_model_file(tiny_folder("llama")), layout)
    assert "precision" in caught.value.hint


def test_a_slab_that_cannot_be_read_ends_the_load(
    tiny_folder: Callable[..., Path], library: NativeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are read on other threads; what goes wrong there comes out here, and the threads end."""
    source = open_model_file(tiny_folder("llama"))
    read, before = type(source).read, threading.active_count()

    def broken(self: Any, name: str, *rows: Any) -> bytearray:
        if "down_proj" in name:
            raise ModelFileError("CHANGED", "the file changed after it was opened")
        return read(self, name, *rows)

    monkeypatch.setattr(type(source), "read", broken)
    layout = CpuLayout(CpuCalls(library), 2)
    with pytest.raises(ModelFileError, match="changed"):
        load_model(source, layout)
    assert layout.threads is None
    assert not layout.slabs
    assert threading.active_count() <= before


def close(logits: torch.Tensor, expected: torch.Tensor) -> bool:
    """The limit leaves room for activations in 8 bit, and for a bf16 cache against an IEEE one."""
    found: Difference = difference(logits, expected)
    return found.nmse < 3e-3
