"""Adapters of random numbers, written as PEFT, MLX and llama.cpp write them; and models that they are merged into."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from localrun_testing.gguf_convert import prepare, write

RANK, SCALE = 4, 0.75  # alpha / rank
_ADAPTED = re.compile(
    r"(?!.*vision).*(layers\.\d+|blk\.\d+)\.(?!.*(expert|router|mlp\.gate\.|_exps|gate_inp|_shexp|conv|norm)).*weight"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A [rank, n_in] and B [n_out, rank] of one weight."""

    a: Tensor
    b: Tensor

    @property
    def delta(self) -> Tensor:
        return self.b @ self.a


def random_pairs(
    shapes: Mapping[str, tuple[int, ...]], seed: int = 0, rank: int = RANK, spread: float = 0.07
) -> dict[str, Pair]:
    """Of every matrix of a layer that may be changed, by its name in the file."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return spread * torch.randn(*shape, generator=generator)

    adapted = {name: shape for name, shape in shapes.items() if len(shape) == 2 and _ADAPTED.fullmatch(name)}
    return {name: Pair(draw(rank, n_in), draw(n_out, rank)) for name, (n_out, n_in) in sorted(adapted.items())}


def pairs_of_folder(folder: Path, **options: Any) -> dict[str, Pair]:
    """Random ones for a checkpoint."""
    return random_pairs(
        {name: tuple(values.shape) for name, values in load_file(folder / "model.safetensors").items()}, **options
    )


def write_peft(target: Path, pairs: Mapping[str, Pair], scale: float = SCALE, **config: Any) -> Path:
    """An adapter as PEFT saves it."""
    rank = next(iter(pairs.values())).a.shape[0]
    tensors: dict[str, Tensor] = {}
    for name, pair in pairs.items():
        module = f"base_model.model.{name.removesuffix('.weight')}"
        tensors |= {f"{module}.lora_A.weight": pair.a, f"{module}.lora_B.weight": pair.b}
    whole = {"peft_type": "LORA", "r": rank, "lora_alpha": scale * rank, "bias": "none", "use_dora": False}
    return _written(target, "adapter_model.safetensors", tensors, {**whole, "modules_to_save": None, **config})


def write_mlx(target: Path, pairs: Mapping[str, Pair], scale: float = SCALE, **config: Any) -> Path:
    """An adapter as mlx-lm saves it."""
    rank = next(iter(pairs.values())).a.shape[0]
    tensors: dict[str, Tensor] = {}
    for name, pair in pairs.items():
        module = name.removesuffix(".weight")
        tensors |= {f"{module}.lora_a": pair.a.T.contiguous(), f"{module}.lora_b": pair.b.T.contiguous()}
    whole = {"fine_tune_type": "lora", "lora_parameters": {"rank": rank, "scale": scale, "dropout": 0.0}}
    return _written(target, "adapters.safetensors", tensors, {**whole, **config})


def _written(target: Path, name: str, tensors: dict[str, Tensor], config: Mapping[str, Any]) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    save_file(tensors, target / name)
    (target / "adapter_config.json").write_text(json.dumps(config))
    return target


def write_gguf(target: Path, pairs: Mapping[str, Pair], arch: str, scale: float = SCALE, kind: str = "adapter") -> Path:
    """An adapter as llama.cpp's converter writes it."""
    writer = gguf.GGUFWriter(target, arch)
    writer.add_type(kind)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", scale * next(iter(pairs.values())).a.shape[0])
    for name, pair in pairs.items():
        writer.add_tensor(f"{name}.lora_a", pair.a.numpy())
        writer.add_tensor(f"{name}.lora_b", pair.b.numpy())
    write(writer)
    return target


def merged_folder(folder: Path, target: Path, pairs: Mapping[str, Pair], scale: float = SCALE) -> Path:
    """A checkpoint with an adapter added to its weights."""
    shutil.copytree(folder, target)
    tensors = load_file(folder / "model.safetensors")
    save_file(
        tensors | {name: tensors[name] + scale * pair.delta for name, pair in pairs.items()},
        target / "model.safetensors",
    )
    return target


def gguf_with_adapter(folder: Path, target: Path) -> tuple[Path, Path, Path]:
    """A checkpoint as a GGUF, an adapter for it with that GGUF's names and rows, and one that both are merged into."""
    paths = target / "base.gguf", target / "adapter.gguf", target / "merged.gguf"
    pairs: dict[str, Pair] = {}
    for path, scale in ((paths[0], 0.0), (paths[2], SCALE)):
        writer = prepare(folder, path)
        tensors = writer.tensors[0]
        pairs = random_pairs({name: np.asarray(info.tensor).shape for name, info in tensors.items()})
        for name, pair in pairs.items():
            tensors[name].tensor = np.asarray(tensors[name].tensor) + (scale * pair.delta).numpy()
        write(writer)
    write_gguf(paths[1], pairs, prepare(folder, target / "unused.gguf").arch)
    return paths


WRITERS: Mapping[str, Callable[..., Path]] = {"peft": write_peft, "mlx": write_mlx}
