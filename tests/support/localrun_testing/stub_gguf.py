"""GGUF files that say enough for `fit` and for downloads, and hold next to nothing."""

from collections.abc import Mapping
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
) -> bytes:
    """One tensor of `rows` × 64; F32 or F16 by its name."""
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
    writer.add_tensor("token_embd.weight", np.zeros((rows, 64), np.float16 if "F16" in name else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()
