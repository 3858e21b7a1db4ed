"""Write the trained decoder as a standard GGUF of the llama architecture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from tools.builtin_model import Shape
from tools.builtin_tokenizer import BOS, CHAT_TEMPLATE, CONTROL_TOKENS, END, PRE, control_id

LAYER_TENSORS = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip
# min-p keeps a choice that is open (which animal comes by) and closes one that is not (the digit of a sum).
SAMPLING = {"general.sampling.temp": 0.5, "general.sampling.top_p": 0.95, "general.sampling.min_p": 0.3}
FILE_TYPES = {
    "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "Q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
    "F16": gguf.LlamaFileType.MOSTLY_F16,
}


def interleave_rotary(weight: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """Reorder each head's rows from (first halves, second halves) to GGUF's llama pairing (2i, 2i+1)."""
    rows, cols = weight.shape
    halves = weight.reshape(n_heads, 2, rows // n_heads // 2, cols)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, cols))


def gguf_tensors(state: Mapping[str, Tensor], shape: Shape) -> dict[str, NDArray[np.float32]]:
    """Tensor name in GGUF to float32 array, Q and K already permuted."""
    arrays = {name: value.detach().float().numpy() for name, value in state.items()}
    out = {name: arrays[name] for name in ("token_embd.weight", "output_norm.weight", "output.weight")}
    for layer in range(shape.n_layers):
        for tensor in LAYER_TENSORS:
            array = arrays[f"layers.{layer}.{tensor}.weight"]
            if tensor in ("attn_q", "attn_k"):
                array = interleave_rotary(array, shape.n_heads if tensor == "attn_q" else shape.n_kv_heads)
            out[f"blk.{layer}.{tensor}.weight"] = array
    return out


def write_gguf(path: Path, state: Mapping[str, Tensor], shape: Shape, tokenizer: Tokenizer, qtype: str) -> None:
    """Write one file; matrices in `qtype` (a key of FILE_TYPES), norms in F32."""
    writer = gguf.GGUFWriter(path, "llama")
    add_model_metadata(writer, shape, qtype)
    add_tokenizer(writer, tokenizer)
    kind = gguf.GGMLQuantizationType[qtype]
    for name, array in gguf_tensors(state, shape).items():
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_model_metadata(writer: gguf.GGUFWriter, shape: Shape, qtype: str) -> None:
    writer.add_name("localrun-tiny")
    writer.add_description("The chat model built into localrun, trained on text its own tools generate.")
    writer.add_license("apache-2.0")
    writer.add_size_label(f"{shape.n_parameters / 1e6:.1f}M")
    writer.add_file_type(FILE_TYPES[qtype])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for key, value in SAMPLING.items():
        writer.add_float32(key, value)
    writer.add_context_length(shape.max_context)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.ffn_size)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.rms_eps)
    writer.add_vocab_size(shape.vocab_size)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    control = set(CONTROL_TOKENS)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE)
    writer.add_token_list([token for token, _ in vocab])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in control else gguf.TokenType.NORMAL for token, _ in vocab]
    )
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    writer.add_bos_token_id(control_id(tokenizer, BOS))
    writer.add_eos_token_id(control_id(tokenizer, END))
    writer.add_eot_token_id(control_id(tokenizer, END))
    writer.add_pad_token_id(control_id(tokenizer, END))
    # The template writes the BOS itself.
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
