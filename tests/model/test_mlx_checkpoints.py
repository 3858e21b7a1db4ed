"""Checkpoints of mlx-lm: its names, its turned tensors and its norms, in f32 and packed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.mlx_checkpoint import save_named, save_packed
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file, save_file

from localrun.formats.checkpoints.registry import held_as
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.odd_norms import odd_norms
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.layouts import FILE

TinyFile = Callable[..., Path]
IDS = token_ids(40, VOCAB_SIZE)
KINDS = {
    "llama-biases": ("affine", 8),
    "phi3": ("affine", 4),
    "gemma": ("affine", 1),
    "gemma3": ("affine", 2),
    "gemma4-e2b": ("affine", 4),
    "gemma4-moe": ("affine", 6),
    "smolvlm": ("affine", 4),
    "qwen2-moe": ("affine", 4),
    "qwen3-moe": ("affine", 4),
    "qwen3.5": ("affine", 5),
    "qwen3.5-moe": ("affine", 3),
    "qwen3-next": ("affine", 4),
    "mixtral": ("affine", 4),
    "gpt-oss": ("mxfp4", 4),
    "lfm2": ("affine", 4),
    "lfm2-moe": ("affine", 4),
    "granite-moe-shared": ("affine", 4),
    "granite-hybrid": ("affine", 4),
    "granite-hybrid-moe": ("affine", 4),
    "nemotron-h-moe": ("affine", 4),
}

# Where rounding decides between two experts that are all but equally likely, a state carries the difference on.
MIXTURES_WITH_STATES = {"qwen3.5-moe": "num_experts", "qwen3-next": "num_experts", "nemotron-h-moe": "n_routed_experts"}


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_the_same_numbers(kind: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    named = save_named(tiny_folder(kind), tmp_path / "named")
    expected = Stepper(tiny_folder(kind)).logits(IDS)
    assert difference(Stepper(named).logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    packed, plain = save_packed(named, tmp_path, *KINDS[kind])
    found = Stepper(packed).logits(IDS)
    assert difference(found, Stepper(plain).logits(IDS)).within(max_abs=1e-4, nmse=1e-9)
    if kind in MIXTURES_WITH_STATES:
        choose_all_experts(packed)
        found = Stepper(packed).logits(IDS)
    assert difference(Stepper(packed, native_threads=2).logits(IDS), found).nmse < 1e-2


@pytest.mark.parametrize(
    ("kind", "bits", "held"), [("llama-biases", 3, "INT4_F32_G32"), ("qwen3-moe", 6, "INT8_F32_G32")]
)
def test_f32_scales_stay_beside_codes(kind: str, bits: int, held: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    named = save_named(tiny_folder(kind), tmp_path / "named")
    packed, plain = save_packed(named, tmp_path, "affine", bits, torch.float32)
    types = {info.qtype for info in open_safetensors(packed).tensors.values() if info.is_joined}
    assert types <= {held, "F32"}
    assert held in types
    found = Stepper(packed).logits(IDS)
    assert difference(found, Stepper(plain).logits(IDS)).within(max_abs=1e-4, nmse=1e-9)
    assert difference(Stepper(packed, native_threads=2).logits(IDS), found).nmse < 1e-2


@pytest.mark.parametrize(("shift", "warns"), [(0.0, False), (1.0, True)], ids=["once", "twice"])
def test_norms_that_were_shifted_twice_are_told(
    shift: float, warns: bool, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    folder = save_named(tiny_folder("qwen3.5"), tmp_path / "named")
    tensors = load_file(folder / "model.safetensors")
    for name in tensors:
        if name.endswith("input_layernorm.weight"):
            tensors[name] = tensors[name] - tensors[name].mean() + 1 + shift
    save_file(tensors, folder / "model.safetensors")
    source = open_safetensors(folder)
    assert bool(odd_norms(source, read_weight_refs(source, read_config(source)))) == warns


def test_memory_is_counted_as_it_is_held(tiny_folder: TinyFile, tmp_path: Path) -> None:
    packed, _ = save_packed(save_named(tiny_folder("gemma4-e2b"), tmp_path / "named"), tmp_path, "affine", 4)
    source = open_safetensors(packed)
    refs = read_weight_refs(source, read_config(source))
    assert held_bytes(source, refs, FILE.nbytes) == allocated_bytes(Stepper(packed).model.weights)
    assert source.nbytes == (packed / "model.safetensors").stat().st_size - header_bytes(packed)
    told = held_as(source.tensors, {"Q4_1": 5.0, "F32": 32.0}.__getitem__)
    assert told.startswith("its packed weights are held as Q4_1, 5 bits a weight")


def choose_all_experts(folder: Path) -> None:
    """Let a mixture compute all of its experts for each token."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    text = config.get("text_config", config)
    text["num_experts_per_tok"] = next(text[key] for key in MIXTURES_WITH_STATES.values() if key in text)
    path.write_text(json.dumps(config))


def header_bytes(folder: Path) -> int:
    return 8 + int.from_bytes((folder / "model.safetensors").read_bytes()[:8], "little")
