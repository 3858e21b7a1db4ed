"""Towers of their real size with random weights, as projectors (mmproj) beside a tiny language model."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from localrun_testing.gguf_convert import convert
from localrun_testing.projector_gguf import write_projector
from localrun_testing.seeing_gemma import save_seeing_gemma, save_seeing_gemma_gguf
from localrun_testing.tiny_gemma_towers import write_gemma_projector
from localrun_testing.tiny_models import save
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig, Gemma4VisionConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4MultimodalEmbedder, Gemma4VisionModel

QWEN: dict[str, Any] = {
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_heads": 16,
    "patch_size": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 96,
    "spatial_merge_size": 2,
}
GEMMA: dict[str, Any] = {  # of E2B, which has bounds around linears
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 16,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "head_dim": 64,
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "position_embedding_size": 10240,
    "use_clipped_linears": True,
}
GEMMA_OUT = 1536


@dataclass(frozen=True, slots=True)
class RandomTower:
    """`side`: pixels of the square that becomes a row. `text` writes a language model into a folder, `projector` a
    projector of a type of weights into a file."""

    side: int
    rows: tuple[int, ...]  # of images worth measuring
    out_size: int
    text: Callable[[Path], Path]
    projector: Callable[[Path, str], Path]


def qwen_text(folder: Path) -> Path:
    """A tiny model whose context holds an image of 1,024 rows."""
    checkpoint = save("qwen3.5", folder)
    config = checkpoint / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 4096}))
    return convert(checkpoint, folder / "text.gguf")


def qwen_projector(path: Path, qtype: str) -> Path:
    return write_projector(path, qwen_state(), QWEN, qtype=qtype)


def qwen_state() -> dict[str, torch.Tensor]:
    """Weights of the size that training leaves."""
    random, hidden, ffn, merged = np.random.default_rng(0), 1152, 4304, 4608

    def linear(name: str, n_out: int, n_in: int) -> dict[str, torch.Tensor]:
        matrix = random.standard_normal((n_out, n_in), np.float32) * n_in**-0.5
        return {f"{name}.weight": torch.from_numpy(matrix), f"{name}.bias": torch.zeros(n_out)}

    def norm(name: str) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": torch.ones(hidden), f"{name}.bias": torch.zeros(hidden)}

    state = linear("patch_embed.proj", hidden, 3 * 2 * 256)
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].reshape(hidden, 3, 2, 16, 16)
    state["pos_embed.weight"] = torch.from_numpy(random.standard_normal((2304, hidden), np.float32))
    for layer in range(27):
        block = f"blocks.{layer}"
        state |= norm(f"{block}.norm1") | norm(f"{block}.norm2")
        state |= linear(f"{block}.attn.qkv", 3 * hidden, hidden) | linear(f"{block}.attn.proj", hidden, hidden)
        state |= linear(f"{block}.mlp.linear_fc1", ffn, hidden) | linear(f"{block}.mlp.linear_fc2", hidden, ffn)
    state |= norm("merger.norm") | linear("merger.linear_fc1", merged, merged)
    return state | linear("merger.linear_fc2", QWEN["out_hidden_size"], merged)


def gemma_text(folder: Path) -> Path:
    """A causal model as wide as E2B, by whose width llama.cpp knows it; its own small projector goes."""
    (folder / "checkpoint").mkdir()
    path = save_seeing_gemma_gguf("causal-1536", save_seeing_gemma("causal-1536", folder / "checkpoint"), folder)
    (folder / "mmproj-model.gguf").unlink()
    return path


def gemma_projector(path: Path, qtype: str) -> Path:
    config = Gemma4VisionConfig(**GEMMA)
    parts = {
        "vision_tower": Gemma4VisionModel(config),
        "embed_vision": Gemma4MultimodalEmbedder(config, Gemma4TextConfig(hidden_size=GEMMA_OUT)),
    }
    state = {f"{part}.{key}": one for part, module in parts.items() for key, one in module.state_dict().items()}
    bounds = {"_min": -30.0, "_max": 30.0}
    state = {key: torch.full_like(one, bounds[key[-4:]]) if key[-4:] in bounds else one for key, one in state.items()}
    state = {key: one for key, one in state.items() if "inv_freq" not in key}
    return write_gemma_projector(path, state, GEMMA, GEMMA_OUT, qtype)


TOWERS = {
    "qwen3.5": RandomTower(32, (256, 1024), QWEN["out_hidden_size"], qwen_text, qwen_projector),
    "gemma4-e2b": RandomTower(48, (256,), GEMMA_OUT, gemma_text, gemma_projector),
}
