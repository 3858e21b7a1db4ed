"""Tiny random towers of Gemma 4 as transformers has them, written as checkpoints without a language model, and as
projectors."""

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig, Gemma4VisionConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4MultimodalEmbedder, Gemma4VisionModel

from localrun_testing.gguf_convert import encode
from localrun_testing.tiny_models import randomise

SHAPE: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "position_embedding_size": 1024,
}
TINY_GEMMA_TOWERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clamped": {"use_clipped_linears": True},
    "standardised": {"standardize": True},
}
OUT_SIZE, BUDGET = 40, 70


class SeeingPart(torch.nn.Module):
    """A tower and what projects its rows."""

    def __init__(self, changes: Mapping[str, Any]) -> None:
        super().__init__()
        config = Gemma4VisionConfig(**SHAPE, **changes)
        config._attn_implementation = "eager"
        self.vision_tower: Any = Gemma4VisionModel(config)
        self.embed_vision = Gemma4MultimodalEmbedder(config, Gemma4TextConfig(hidden_size=OUT_SIZE))

    def rows(self, patches: Tensor, lines: int, columns: int) -> Tensor:
        """Rows of one image from patches between 0 and 1, line by line."""
        line, column = np.divmod(np.arange(lines * columns), columns)
        places = torch.from_numpy(np.stack([column, line], axis=1))
        with torch.no_grad():
            found = self.vision_tower(patches[None], places[None]).last_hidden_state
            projected: Tensor = self.embed_vision(inputs_embeds=found)
        return projected


def build_part(name: str) -> SeeingPart:
    """Always the same weights; clamps bite, and those of some linears that read alike differ."""
    part = SeeingPart(TINY_GEMMA_TOWERS[name])
    randomise(part, seed=zlib.crc32(name.encode()))
    random = torch.Generator().manual_seed(3)
    for layer in part.vision_tower.encoder.layers:  # scores are not scaled
        layer.self_attn.q_norm.weight.data *= SHAPE["head_dim"] ** -0.5
    for key, buffer in part.named_buffers():
        if key.endswith(("_min", "_max")):
            sign = -1.0 if key.endswith("min") else 1.0
            bound = torch.rand((), generator=random) + 0.5
            buffer.copy_(sign * (torch.ones(()) if "layers.0" in key and "input" in key else bound))
        elif key.endswith(("std_bias", "std_scale")):
            buffer.copy_(torch.rand(buffer.shape, generator=random) + 0.5)
    return part.float().eval()


def save_part(name: str, folder: Path, part: SeeingPart | None = None) -> Path:
    """Write a recipe as a safetensors folder, with the settings of its preprocessor."""
    state = {key: value for key, value in (part or build_part(name)).state_dict().items() if "inv_freq" not in key}
    save_file({f"model.{key}": value.contiguous() for key, value in state.items()}, folder / "model.safetensors")
    vision = {**SHAPE, **TINY_GEMMA_TOWERS[name], "model_type": "gemma4_vision"}
    config = {"model_type": "gemma4", "vision_config": vision, "text_config": {"hidden_size": OUT_SIZE}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({"max_soft_tokens": BUDGET}))
    return folder


# How llama.cpp's conversion calls tensors (conversion/gemma.py there).
_NAMES = {
    "vision_tower.patch_embedder.input_proj.weight": "v.patch_embd.weight",
    "vision_tower.patch_embedder.position_embedding_table": "v.position_embd.weight",
    "vision_tower.std_bias": "v.std_bias",
    "vision_tower.std_scale": "v.std_scale",
    "embed_vision.embedding_projection.weight": "mm.input_projection.weight",
}
_OF_LAYER = {
    "input_layernorm": "ln1",
    "post_attention_layernorm": "attn_post_norm",
    "pre_feedforward_layernorm": "ln2",
    "post_feedforward_layernorm": "ffn_post_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_out",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gemma_projector(
    path: Path, state: Mapping[str, Tensor], shape: Mapping[str, Any], out_size: int, qtype: str = "F32"
) -> Path:
    """Write the GGUF of a projector (mmproj) from the state of a tower and its embedder."""
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.vision.projector_type", "gemma4v")
    writer.add_vision_projection_dim(out_size)
    writer.add_vision_image_size(224)
    writer.add_vision_patch_size(shape["patch_size"])
    writer.add_vision_embedding_length(shape["hidden_size"])
    writer.add_vision_feed_forward_length(shape["intermediate_size"])
    writer.add_vision_block_count(shape["num_hidden_layers"])
    writer.add_vision_head_count(shape["num_attention_heads"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.0] * 3)
    writer.add_vision_image_std([1.0] * 3)
    for name, numbers in named(state, shape["patch_size"]):
        is_matrix = numbers.ndim == 2 and numbers.shape[1] % 32 == 0
        encoded, kind = encode(numbers, qtype if is_matrix else "F32")
        writer.add_tensor(name, encoded, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_gemma_embedder(path: Path, part: torch.nn.Module, config: Any) -> Path:
    """Write the GGUF of an embedder as conversion/gemma.py of llama.cpp: the numbers of a patch by their colour."""
    side = config.model_patch_size
    by_colour = np.arange(3 * side**2).reshape(side, side, 3).transpose(2, 0, 1).ravel()
    state = {name: one.numpy() for name, one in part.state_dict().items()}
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_string("clip.vision.projector_type", "gemma4uv")
    writer.add_vision_projection_dim(len(state["multimodal_embedder.embedding_projection.weight"]))
    writer.add_vision_patch_size(config.patch_size)
    writer.add_vision_embedding_length(config.mm_embed_dim)
    writer.add_vision_attention_layernorm_eps(1e-6)
    for number, name in enumerate(("patch_ln1", "patch_ln2", "pos_norm"), 1):
        for kind in ("weight", "bias"):
            numbers = state[f"{name}.{kind}"]
            writer.add_tensor(f"v.patch_norm.{number}.{kind}", numbers[by_colour] if number == 1 else numbers)
    writer.add_tensor("v.patch_embd.weight", np.ascontiguousarray(state["patch_dense.weight"][:, by_colour]))
    writer.add_tensor("v.patch_embd.bias", state["patch_dense.bias"])
    writer.add_tensor("v.position_embd.weight", np.ascontiguousarray(state["pos_embedding"].transpose(1, 0, 2)))
    writer.add_tensor("mm.input_projection.weight", state["multimodal_embedder.embedding_projection.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def named(state: Mapping[str, Tensor], side: int) -> Iterator[tuple[str, np.ndarray]]:
    """Tensors with their names in a GGUF; patches of `side` pixels lie there by colour."""
    for name, tensor in state.items():
        numbers = np.atleast_1d(tensor.detach().float().numpy())
        if name.endswith("input_proj.weight"):
            numbers = np.ascontiguousarray(numbers.reshape(-1, side, side, 3).transpose(0, 3, 1, 2))
        if name in _NAMES:
            yield _NAMES[name], numbers
        elif ".layers." in name:
            _, rest = name.split(".layers.")
            layer, part = rest.split(".", 1)
            module, _, kind = part.replace(".linear.", ".").rpartition(".")
            yield f"v.blk.{layer}.{_OF_LAYER[module]}.{kind}", numbers
