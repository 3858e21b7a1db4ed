"""Matrices of quantised checkpoints as the formats' own libraries pack them (tools/write_checkpoint_samples.py)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors
from localrun_testing import REPOSITORY

SAMPLES = REPOSITORY / "tests" / "formats" / "checkpoint_samples"
DIGESTS = json.loads((SAMPLES / "digests.json").read_text())
NAME = "w.weight"

Tensors = dict[str, torch.Tensor]
Change = Callable[[dict[str, Any], Tensors], None]  # of a config.json and its tensors


def sample(name: str) -> tuple[dict[str, Any], Tensors]:
    """The config.json and the tensors of a sample."""
    with safe_open(SAMPLES / f"{name}.safetensors", framework="pt") as file:
        return json.loads(file.metadata()["config"]), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def written(folder: Path, config: dict[str, Any], tensors: Tensors) -> SafetensorsFolder:
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return open_safetensors(folder)


def unpacked(model: SafetensorsFolder, first: int = 0, n: int | None = None) -> torch.Tensor:
    """The numbers of some rows, times the scale beside them."""
    info = model.tensors[NAME]
    raw = torch.frombuffer(model.read(NAME, first, n), dtype=torch.uint8)
    values = QUANT_TYPES[info.qtype].decode(raw, info.shape if n is None else (n, info.shape[-1]))
    if (scale := NAME.removesuffix("weight") + "scale") not in model.tensors:
        return values
    (factor,) = set(np.frombuffer(model.read(scale), np.float32).tolist())
    scaled: torch.Tensor = values * factor
    return scaled


def one_more_scheme(*targets: str) -> Change:
    """Of 8 bits in groups of 32, beside one of 4 bits in groups of 64: both have tensors of the same shapes."""

    def apply(config: dict[str, Any], tensors: Tensors) -> None:
        groups = config["quantization_config"]["config_groups"]
        weights = groups["group_0"]["weights"] | {"num_bits": 8, "group_size": 32}
        groups["group_1"] = {"targets": targets, "weights": weights}

    return apply
