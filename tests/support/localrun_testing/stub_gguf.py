"""GGUF files that say enough for `fit` and for downloads, and hold next to nothing: weights of zero, no tokenizer."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np


def stub_gguf(
    folder: Path,
    name: str,
    rows: int = 320,
    layers: int = 2,
    arch: str = "qwen3",
    more: Mapping[str, int | str] = MappingProxyType({}),
    without: Collection[str] = (),
    besides: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> bytes:
    """An embedding of `rows` × 64, as qwen3 all that its layers need, and `besides`; F32 or F16 by its name."""
    path = folder / name
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(8192)
    writer.add_embedding_length(64)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(rows)
    for key, value in more.items():
        writer.add_string(key, value) if isinstance(value, str) else writer.add_uint32(key, value)
    for tensor, shape in {**tensors_of(rows, layers if arch == "qwen3" else 0), **besides}.items():
        if tensor not in without:
            is_half = "F16" in name and len(shape) == 2
            writer.add_tensor(tensor, np.zeros(shape, np.float16 if is_half else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def tensors_of(rows: int, layers: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes (rows first) of the tensors of such a model."""
    tensors: dict[str, tuple[int, ...]] = {"token_embd.weight": (rows, 64), "output_norm.weight": (64,)}
    for index in range(layers):
        square = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (64, 64))
        norms = {"attn_norm": (64,), "ffn_norm": (64,), "attn_q_norm": (16,), "attn_k_norm": (16,)}
        forward = {"ffn_gate": (128, 64), "ffn_up": (128, 64), "ffn_down": (64, 128)}
        tensors |= {f"blk.{index}.{name}.weight": shape for name, shape in (square | norms | forward).items()}
    return tensors
