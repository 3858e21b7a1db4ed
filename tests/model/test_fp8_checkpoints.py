"""Checkpoints in FP8 beside the same numbers in f32: scales of blocks, rows and matrices, bare codes, and experts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.instruction_sets import library_in_use
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file, save_file

TinyFile = Callable[..., Path]
IDS = token_ids(40, VOCAB_SIZE)
# AMX multiplies FP8 with activations in bf16. Rounding to a step of 2^-7 is, of numbers between 1 and 2, a mean square
# error of 2^-14 / 12, relative to their squares 2.8e-6. Errors of products that follow each other add up, and norms and
# softmax pass them on: some thirty products in these models come to 7e-5 over all rows, and 2.2e-4 in the worst.
MOST_ROUNDED = 100 * 2.8e-6
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
    blocks = [BLOCK, BLOCK] if granularity == "blocks" else None
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": blocks}
    (target / "packed" / "config.json").write_text(json.dumps(config))
    return target / "packed", target / "plain"


@pytest.mark.parametrize("granularity", ["blocks", "rows", "matrix", "none"])
@pytest.mark.parametrize("kind", ["llama", "phi3", "qwen3.5-moe", "deepseek-v3"])
def test_logits_are_those_of_the_same_numbers(
    kind: str, granularity: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    packed, plain = save_twins(tiny_folder(kind), tmp_path, granularity)
    expected = Stepper(plain).logits(IDS)
    assert difference(Stepper(packed).logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    native = Stepper(packed, native_threads=2).logits(IDS)
    errors = (native - expected).square().sum(-1) / expected.square().sum(-1)  # [rows]
    if library_in_use().isa != "amx":  # activations stay f32
        assert float(errors.max()) < 1e-10
    else:  # of experts that are about as good, a row may be given to another
        assert int((errors > MOST_ROUNDED).sum()) <= ("moe" in kind)
