"""Checkpoints in NVFP4 beside the same numbers in f32, as compressed-tensors and ModelOpt name them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.packed_checkpoint import nvfp4
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file, save_file

TinyFile = Callable[..., Path]
IDS = token_ids(40, VOCAB_SIZE)
CONFIGS = {
    "compressed-tensors": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}


def save_twins(folder: Path, target: Path, program: str) -> tuple[Path, Path]:
    tensors, plain = {}, {}
    for name, weights in load_file(folder / "model.safetensors").items():
        plain[name] = tensors[name] = weights
        if weights.ndim != 2 or not name.endswith("proj.weight") or weights.shape[1] % 16:
            continue
        codes, scales, whole, plain[name] = nvfp4(weights)
        del tensors[name]
        stem = name.removesuffix("weight")
        if program == "modelopt":
            parts = {"weight": codes, "weight_scale_2": whole, "input_scale": torch.ones(1)}
        else:
            parts = {"weight_packed": codes, "weight_global_scale": 1 / whole, "input_global_scale": torch.ones(1)}
        tensors |= {stem + kind: part for kind, part in {**parts, "weight_scale": scales}.items()}
    for path, kept in ((target / "packed", tensors), (target / "plain", plain)):
        shutil.copytree(folder, path)
        save_file(kept, path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = CONFIGS[program]
    (target / "packed" / "config.json").write_text(json.dumps(config))
    return target / "packed", target / "plain"


@pytest.mark.parametrize("program", CONFIGS)
@pytest.mark.parametrize("kind", ["llama", "phi3", "qwen3-moe"])
def test_logits_are_those_of_the_same_numbers(kind: str, program: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder, plain = save_twins(tiny_folder(kind), tmp_path, program)
    expected = Stepper(plain).logits(IDS)
    assert difference(Stepper(folder).logits(IDS), expected).within(max_abs=1e-4, nmse=1e-9)
    assert difference(Stepper(folder, native_threads=2).logits(IDS), expected).nmse < 1e-4
