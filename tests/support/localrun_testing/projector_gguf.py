"""The GGUF of a projector (mmproj) from a tower of transformers, as llama.cpp's own conversion would make it.

Nothing of localrun is used here. Names and keys are those of conversion/qwen3vl.py there.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np
from torch import Tensor

from localrun_testing.gguf_convert import encode

NAMES = {
    "patch_embed.proj": "v.patch_embd",
    "pos_embed": "v.position_embd",
    "merger.norm": "v.post_ln",
    "merger.linear_fc1": "mm.0",
    "merger.linear_fc2": "mm.2",
}
OF_LAYER = {
    "norm1": "ln1",
    "norm2": "ln2",
    "attn.qkv": "attn_qkv",
    "attn.proj": "attn_out",
    "mlp.linear_fc1": "ffn_up",
    "mlp.linear_fc2": "ffn_down",
}
OF_TAP = {"norm": "norm", "linear_fc1": "fc1", "linear_fc2": "fc2"}


def write_projector(
    path: Path,
    state: Mapping[str, Tensor],
    shape: Mapping[str, Any],
    tapped: Sequence[int] = (),
    qtype: str = "F32",
    more: Mapping[str, Tensor] = MappingProxyType({}),
) -> Path:
    """Write `state` of a vision model, and `more` tensors; `shape` is its config."""
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_clip_projector_type("qwen3vl_merger")
    writer.add_vision_projection_dim(shape["out_hidden_size"])
    writer.add_vision_image_size(round(shape["num_position_embeddings"] ** 0.5) * shape["patch_size"])
    writer.add_vision_patch_size(shape["patch_size"])
    writer.add_vision_embedding_length(shape["hidden_size"])
    writer.add_vision_feed_forward_length(shape["intermediate_size"])
    writer.add_vision_block_count(shape["depth"])
    writer.add_vision_head_count(shape["num_heads"])
    writer.add_vision_spatial_merge_size(shape["spatial_merge_size"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.5] * 3)
    writer.add_vision_image_std([0.5] * 3)
    writer.add_vision_use_gelu(True)
    writer.add_vision_is_deepstack_layers([layer in tapped for layer in range(shape["depth"])])
    for name, tensor in (*named(state, tapped), *((name, x.numpy()) for name, x in more.items())):
        is_matrix = tensor.ndim == 2 and "position" not in name
        encoded, kind = encode(tensor, qtype if is_matrix and tensor.shape[1] % 32 == 0 else "F32")
        writer.add_tensor(name, encoded, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def named(state: Mapping[str, Tensor], tapped: Sequence[int]) -> Iterator[tuple[str, np.ndarray]]:
    """Tensors with their names in a GGUF; the two frames of a film are apart."""
    for name, tensor in state.items():
        numbers = tensor.detach().float().numpy()
        part, _, kind = name.rpartition(".")
        if numbers.ndim == 5:
            yield "v.patch_embd.weight", np.ascontiguousarray(numbers[:, :, 0])
            yield "v.patch_embd.weight.1", np.ascontiguousarray(numbers[:, :, 1])
        elif part in NAMES:
            yield f"{NAMES[part]}.{kind}", numbers
        elif part.startswith("blocks."):
            _, layer, rest = part.split(".", 2)
            yield f"v.blk.{layer}.{OF_LAYER[rest]}.{kind}", numbers
        else:
            _, place, rest = part.split(".", 2)
            yield f"v.deepstack.{tapped[int(place)]}.{OF_TAP[rest]}.{kind}", numbers
