"""Packed samples of quantised checkpoints, made by the libraries that define the formats: a few KiB each.

    pip install mlx mlx-cpu compressed-tensors torch safetensors   (in an environment of their own)
    python tools/write_checkpoint_samples.py

Each file of tests/formats/checkpoint_samples holds a matrix as the library packs it, the f32 numbers that the library
unpacks (`expected`), and the config.json that belongs to it. `make test` reads the files, and needs no library.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

FOLDER = Path(__file__).parent.parent / "tests" / "formats" / "checkpoint_samples"
ROWS, COLUMNS = 3, 128
FLOAT_MODES = (("mxfp4", 32, 4), ("nvfp4", 16, 4), ("mxfp8", 32, 8))  # of MLX: mode, group size, bits

Tensors = dict[str, torch.Tensor]
Sample = tuple[str, dict[str, Any], Tensors]  # name, config.json, tensors


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    digests = {}
    for name, config, tensors in samples():
        raw = save(tensors, {"config": json.dumps(config)})
        (FOLDER / f"{name}.safetensors").write_bytes(raw)
        digests[name] = hashlib.sha256(raw).hexdigest()
        print(f"{name}: {len(raw):,} bytes")
    (FOLDER / "digests.json").write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")


def samples() -> Iterator[Sample]:
    yield from mlx_samples()


def weights(seed: int, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> np.ndarray:
    """Like those of a model: near zero, a few far out, and a group of nothing but zeros."""
    draw = np.random.default_rng(seed)
    made = draw.standard_normal(shape) * np.where(draw.random(shape) < 0.02, 0.5, 0.05)
    made[..., 0, :64] = 0
    return made.astype(np.float32)


def mlx_samples() -> Iterator[Sample]:
    """All modes and bits; groups of 32, 64 and 128; scales in f16, bf16 and f32; matrices of experts in one tensor."""
    import mlx.core as mx

    cases: list[tuple[str, int, int, Any, tuple[int, ...]]] = [
        *(("affine", 64, bits, mx.bfloat16, (ROWS, COLUMNS)) for bits in (2, 3, 4, 5, 6, 8)),
        *(("affine", group, 4, mx.float16, (ROWS, COLUMNS)) for group in (32, 128)),
        ("affine", 64, 4, mx.float32, (ROWS, COLUMNS)),
        ("affine", 32, 4, mx.bfloat16, (2, ROWS, 64)),
        *((mode, group, bits, mx.bfloat16, (ROWS, COLUMNS)) for mode, group, bits in FLOAT_MODES),
        ("nvfp4", 16, 4, mx.bfloat16, (ROWS, 96)),
    ]
    for number, (mode, group, bits, dtype, shape) in enumerate(cases):
        parts = mx.quantize(mx.array(weights(number, shape)).astype(dtype), group, bits, mode)
        wide = [parts[0], *(part if mode != "affine" else part.astype(mx.float32) for part in parts[1:])]
        expected = mx.dequantize(*wide, group_size=group, bits=bits, mode=mode, dtype=mx.float32)
        config = {"quantization": {"group_size": group, "bits": bits, "mode": mode}}
        named = dict(zip(("w.weight", "w.scales", "w.biases"), parts, strict=False))
        tensors = {name: of_mlx(part) for name, part in named.items()} | {"expected": of_mlx(expected)}
        yield f"mlx-{number:02}-{mode}-{bits}-g{group}", config, tensors


def of_mlx(array: Any) -> torch.Tensor:
    """The same numbers; numpy has no bf16."""
    import mlx.core as mx

    if array.dtype == mx.bfloat16:
        return torch.from_numpy(np.array(array.view(mx.uint16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


if __name__ == "__main__":
    main()
