"""A gpt-oss checkpoint with its experts in MXFP4, as the published ones are, and what transformers makes of it."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from localrun_testing.tiny_models import build, save

SHARDED = "model-{}.safetensors"


def packed(n: int, rows: int, columns: int, seed: int) -> dict[str, Tensor]:
    """Random codes and scales of matrices [n, rows, columns]."""
    draw = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 256, (n, rows, columns // 32, 16), dtype=torch.uint8, generator=draw)
    scales = torch.randint(121, 126, (n, rows, columns // 32), dtype=torch.uint8, generator=draw)
    return {"_blocks": codes, "_scales": scales}


def decoded(parts: dict[str, Tensor]) -> Tensor:
    """f32 [n, columns, rows], as transformers decodes them."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors  # the models of transformers: seconds

    weights: Tensor = convert_moe_packed_tensors(parts["_blocks"], parts["_scales"], dtype=torch.float32)
    return weights


def save_mxfp4(folder: Path, name: str = "gpt-oss") -> Any:
    """Write the checkpoint, codes in one file and scales in another -> the fp32 model of the same weights."""
    save(name, folder)
    model, stored = build(name), load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts: dict[str, dict[str, Tensor]] = {"_blocks": {}, "_scales": {}}
    for seed, (key, weights) in enumerate(sorted(model.named_parameters())):
        if not key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        del stored[key]
        n, columns, rows = weights.shape
        pair = packed(n, rows, columns, seed)
        weights.data = decoded(pair)
        for kind, tensor in pair.items():
            parts[kind][key + kind] = tensor
    files = {SHARDED.format("1"): stored | parts["_blocks"], SHARDED.format("2"): parts["_scales"]}
    for file, tensors in files.items():
        save_file(tensors, folder / file, {"format": "pt"})
    weight_map = {key: file for file, tensors in files.items() for key in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))
    return model
