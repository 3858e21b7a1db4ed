"""Checkpoints in FP8 beside the same numbers in f32: scales of blocks, rows and matrices, bare codes, and experts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file, save_file

TinyFile = Callable[..., Path]
IDS = token_ids(40, VOCAB_SIZE)
BLOCK = 64  # rows and columns: those of tiny models are no multiple of it


def scales_of(weights: torch.Tensor, granularity: str) -> torch.Tensor:
    """Scales [blocks, blocks], [rows, 1] or [1]."""
    if granularity == "blocks":
        pads = [-size % BLOCK for size in reversed(weights.shape)]
        padded = torch.nn.functional.pad(weights, (0, pads[0], 0, pads[1]))
        return padded.unfold(0, BLOCK, BLOCK).unfold(1, BLOCK, BLOCK).abs().amax((2, 3)) / 448
    return (weights.abs().amax(1, keepdim=True) if granularity == "rows" else weights.abs().max()[None]) / 448


def spread(scales: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A scale for every number."""
    if scales.ndim == 1 or (scales.shape[1] == 1 and scales.shape[0] == shape[0]):
        return scales.expand(shape)
    return scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[: shape[0], : shape[1]]


def save_twins(folder: Path, target: Path, granularity: str) -> tuple[Path, Path]:
    packed, plain = {}, {}
    for name, weights in load_file(folder / "model.safetensors").items():
        plain[name] = packed[name] = weights
        if weights.ndim != 2 or not name.endswith("proj.weight"):
            continue
        scales = torch.ones(1) if granularity == "none" else scales_of(weights, granularity)
        packed[name] = (weights / spread(scales, weights.shape)).to(torch.float8_e4m3fn)
        plain[name] = packed[name].float() * spread(scales, weights.shape)
        if granularity != "none":
            kind = "weight_scale_inv" if granularity == "blocks" else "weight_scale"
            packed[name.removesuffix("weight") + kind] = scales
            packed[name.removesuffix("weight") + "input_scale"] = torch.ones(1)
    for path, tensors in ((target / "packed", packed), (target / "plain", plain)):
        shutil.copytree(folder, path)
        save_file(tensors, path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK]}
    (target / "packed" / "config.json").write_text(json.dumps(config))
    return target / "packed", target / "plain"


@pytest.mark.parametrize("granularity", ["blocks", "rows", "matrix", "none"])
@pytest.mark.parametrize("kind", ["llama", "phi3", "qwen3.5-moe"])
def test_logits_are_those_of_the_same_numbers(
    kind: str, granularity: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    packed, plain = save_twins(tiny_folder(kind), tmp_path, granularity)
    expected = Stepper(plain).logits(IDS)
    assert difference(Stepper(packed).logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    # AMX rounds activations to bf16, as for weights in bf16: a row may go to another of two experts that are as good.
    assert difference(Stepper(packed, native_threads=2).logits(IDS), expected).nmse < 5e-3
