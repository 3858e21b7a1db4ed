"""Tiny random towers as transformers has them, written as checkpoints whose language model is left out."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from localrun_testing.tiny_models import randomise, transformers

SHAPE = {
    "depth": 4,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_heads": 3,
    "patch_size": 8,
    "num_position_embeddings": 49,
    "out_hidden_size": 40,
    "in_channels": 3,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "hidden_act": "gelu_pytorch_tanh",
}
PIXELS = {"size": {"shortest_edge": 4 * 256, "longest_edge": 40 * 256}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


@dataclass(frozen=True, slots=True)
class TinyTower:
    """A recipe: classes of transformers, and the model type that config.json has."""

    model_type: str
    config: str
    model: str
    more: dict[str, Any]

    def build(self) -> Any:
        config = getattr(transformers, self.config)(**(SHAPE | self.more))
        config._attn_implementation = "eager"
        model = module_of(self.model_type).__dict__[self.model](config)
        randomise(model, seed=5)
        return model.float().eval()


TINY_TOWERS = {
    "qwen3.5": TinyTower("qwen3_5", "Qwen3_5VisionConfig", "Qwen3_5VisionModel", {}),
    "qwen3-vl": TinyTower(
        "qwen3_vl", "Qwen3VLVisionConfig", "Qwen3VLVisionModel", {"deepstack_visual_indexes": [0, 2]}
    ),
    "qwen3-vl-last": TinyTower(
        "qwen3_vl", "Qwen3VLVisionConfig", "Qwen3VLVisionModel", {"deepstack_visual_indexes": [1, 3]}
    ),
}


def module_of(model_type: str) -> Any:
    """The module of transformers that has the classes of a model type."""
    from importlib import import_module

    return import_module(f"transformers.models.{model_type}.modeling_{model_type}")


def save_tower(name: str, folder: Path) -> Path:
    """Write a recipe as a safetensors folder, with the settings of its preprocessor."""
    recipe = TINY_TOWERS[name]
    model = recipe.build()
    save_file(
        {f"model.visual.{key}": value.contiguous() for key, value in model.state_dict().items()},
        folder / "model.safetensors",
    )
    vision = {**SHAPE, **recipe.more, "model_type": f"{recipe.model_type}_vision"}
    (folder / "config.json").write_text(json.dumps({"model_type": recipe.model_type, "vision_config": vision}))
    (folder / "preprocessor_config.json").write_text(json.dumps({**PIXELS, "patch_size": 8, "merge_size": 2}))
    return folder


def rows_of_transformers(model: Any, patches: Tensor, grids: list[tuple[int, int]]) -> tuple[Tensor, list[Tensor]]:
    """Rows of all images, and those that deepstack adds; patches [n, 3 · 8 · 8] have one frame, which is doubled."""
    frames = patches.unflatten(1, (3, 1, 64)).expand(-1, -1, 2, -1).flatten(1)
    with torch.no_grad():
        found = model(frames, grid_thw=torch.tensor([[1, *grid] for grid in grids]))
    return found.pooler_output, list(getattr(found, "deepstack_features", None) or [])
