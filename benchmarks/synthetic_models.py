"""GGUF files of real shapes with random weights: speed depends on shapes and types, not on values.

The f16 file is written by the gguf package, the quantised ones by llama.cpp's own quantiser.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from benchmarks.synthetic_vocabulary import add_vocabulary


@dataclass(frozen=True)
class Shape:
    """The public shape of a model. Every `full_every`-th layer sees all, the others a window.

    Or they are linear attention with `delta_heads` of keys and of values, of 128 dims each. With `n_experts` a layer
    has that many networks of `ffn_size`, of which a token uses `n_used`.
    """

    arch: str
    hidden_size: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    rope_theta: float
    window: int | None = None
    full_every: int = 0
    delta_heads: int = 0
    rope_dims: int = 0  # 0: all of a head
    gain: float | None = None  # weights deviate by gain / sqrt(columns), and what is said depends on all of the text
    template: str = ""
    n_experts: int = 0
    n_used: int = 0


CHATML = """{%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"""
FORGETS_THOUGHTS = """{%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content and loop.last -%}{{ '<think>\\n' + m.reasoning_content + '</think>' }}{%- endif -%}
{{ m.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n<think>\\n' }}{%- endif -%}"""
SHAPES = {
    "qwen3-0.6b": Shape("qwen3", 1024, 28, 16, 8, 128, 3072, 151_936, 1e6),
    "qwen3-1.7b": Shape("qwen3", 2048, 28, 16, 8, 128, 6144, 151_936, 1e6),
    "qwen3-4b": Shape("qwen3", 2560, 36, 32, 8, 128, 9728, 151_936, 1e6),
    "llama-3.2-1b": Shape("llama", 2048, 16, 32, 8, 64, 8192, 128_256, 5e5),
    "llama-3.2-3b": Shape("llama", 3072, 28, 24, 8, 128, 8192, 128_256, 5e5),
    "gemma-like-1b": Shape("qwen3", 1152, 26, 4, 1, 256, 6912, 262_144, 1e6),
    "gemma-3-1b": Shape("gemma3", 1152, 26, 4, 1, 256, 6912, 32_000, 1e6, window=512, full_every=6),
    "qwen3.5-0.8b": Shape(
        "qwen35", 1024, 24, 8, 2, 256, 3584, 248_320, 1e7, full_every=4, delta_heads=16, rope_dims=64
    ),
    "qwen3.5-2b": Shape("qwen35", 2048, 24, 8, 2, 256, 6144, 248_320, 1e7, full_every=4, delta_heads=16, rope_dims=64),
    "qwen3-30b-a3b-6": Shape(  # 6 of its 48 layers
        "qwen3moe", 2048, 6, 32, 4, 128, 768, 151_936, 1e6, n_experts=128, n_used=8
    ),
    "tiny": Shape("llama", 256, 4, 8, 2, 32, 768, 32_000, 1e4),
    "tiny-thinker": Shape("qwen3", 64, 4, 4, 2, 32, 128, 400, 1e6, gain=2.5, template=FORGETS_THOUGHTS),
    "tiny-windows": Shape("gemma3", 64, 6, 4, 1, 32, 128, 400, 1e6, 100, 3, gain=2.5, template=CHATML),
    "tiny-states": Shape(
        "qwen35", 64, 8, 4, 2, 64, 128, 400, 1e6, full_every=4, delta_heads=2, rope_dims=64, gain=2.5, template=CHATML
    ),
}
DELTA_DIM = 128  # of every head of linear attention
TAPS = 4  # of its convolution
FILE_TYPES = {  # what llama.cpp's quantiser calls them
    "F32": 0, "F16": 1, "BF16": 32,
    "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q8_0": 7,
    "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17,
    "Q6_K": 18,
    "IQ1_S": 24, "IQ1_M": 31, "IQ2_XXS": 19, "IQ2_XS": 20, "IQ2_S": 28, "IQ3_XXS": 23, "IQ3_S": 26,
    "IQ4_NL": 25, "IQ4_XS": 30, "TQ1_0": 36, "TQ2_0": 37, "MXFP4_MOE": 38,
}  # fmt: skip


def model_file(folder: Path, shape: str, qtype: str, llama: Any) -> Path:
    """The file of a shape in a type, made when it is not there yet. `llama` is the module llama_cpp.llama_cpp."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape}-{qtype}.gguf"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    if qtype == "F16" and shape in SHAPES:
        write_f16(part, SHAPES[shape])
    elif qtype == "F16":
        from benchmarks.published_shapes import write_published  # and with it transformers

        write_published(part, shape)
    else:
        quantise(model_file(folder, shape, "F16", llama), part, qtype, llama)
    part.rename(path)
    return path


def write_f16(path: Path, shape: Shape) -> None:
    """A file with all matrices f16; embeddings are tied, but for shapes with a gain, which would repeat themselves."""
    writer = gguf.GGUFWriter(path, shape.arch)
    add_hyperparameters(writer, shape)
    add_vocabulary(writer, shape.vocab_size)
    if shape.template:
        writer.add_chat_template(shape.template)
    add_weights(writer, shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()


def add_hyperparameters(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_context_length(32_768)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.ffn_size)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.rope_dims or shape.head_dim)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(1e-6)
    if shape.window is not None:
        writer.add_sliding_window(shape.window)
        writer.add_sliding_window_pattern(shape.full_every)
    if shape.delta_heads:
        writer.add_rope_dimension_sections([11, 11, 10, 0])
        writer.add_full_attention_interval(shape.full_every)
        writer.add_ssm_conv_kernel(TAPS)
        writer.add_ssm_state_size(DELTA_DIM)
        writer.add_ssm_group_count(shape.delta_heads)
        writer.add_ssm_time_step_rank(shape.delta_heads)
        writer.add_ssm_inner_size(shape.delta_heads * DELTA_DIM)
    if shape.n_experts:
        writer.add_expert_count(shape.n_experts)
        writer.add_expert_used_count(shape.n_used)
        writer.add_expert_feed_forward_length(shape.ffn_size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def is_recurrent(shape: Shape, layer: int) -> bool:
    return shape.delta_heads > 0 and (layer + 1) % shape.full_every != 0


def matrices_of(shape: Shape, layer: int) -> dict[str, tuple[int, ...]]:
    """Rows and columns of the matrices of a layer, and before them the number of experts of theirs."""
    hidden, q_size, kv_size = shape.hidden_size, shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    if is_recurrent(shape, layer):
        width = shape.delta_heads * DELTA_DIM
        rows = {
            "attn_qkv": 3 * width,
            "attn_gate": width,
            "ssm_alpha": shape.delta_heads,
            "ssm_beta": shape.delta_heads,
        }
        mixing: dict[str, tuple[int, ...]] = {name: (n_rows, hidden) for name, n_rows in rows.items()}
        mixing["ssm_out"] = (hidden, width)
    else:
        gated = 2 if shape.delta_heads else 1  # queries and the gate of what they find
        rows = {"attn_q": gated * q_size, "attn_k": kv_size, "attn_v": kv_size}
        mixing = {name: (n_rows, hidden) for name, n_rows in rows.items()} | {"attn_output": (hidden, q_size)}
    if n := shape.n_experts:
        widening = {f"ffn_{name}_exps": (n, shape.ffn_size, hidden) for name in ("gate", "up")}
        return mixing | widening | {"ffn_down_exps": (n, hidden, shape.ffn_size), "ffn_gate_inp": (n, hidden)}
    ffn = {"ffn_gate": (shape.ffn_size, hidden), "ffn_up": (shape.ffn_size, hidden)}
    return mixing | ffn | {"ffn_down": (hidden, shape.ffn_size)}


def vectors_of(shape: Shape, layer: int) -> dict[str, np.ndarray]:
    """The norms of a layer, all ones, and what else of it is not a matrix."""
    after = "post_attention_norm" if shape.delta_heads else "ffn_norm"
    norms = {"attn_norm": shape.hidden_size, after: shape.hidden_size}
    if is_recurrent(shape, layer):
        norms |= {"ssm_norm": DELTA_DIM}
    elif shape.arch in ("qwen3", "qwen3moe", "gemma3", "qwen35"):
        norms |= {"attn_q_norm": shape.head_dim, "attn_k_norm": shape.head_dim}
    if shape.arch == "gemma3":
        norms |= {"post_attention_norm": shape.hidden_size, "post_ffw_norm": shape.hidden_size}
    vectors = {f"{name}.weight": np.ones(size, np.float32) for name, size in norms.items()}
    if is_recurrent(shape, layer):
        heads = np.ones(shape.delta_heads, np.float32)
        conv = np.full((3 * shape.delta_heads * DELTA_DIM, TAPS), 1 / TAPS, np.float32)
        vectors |= {"ssm_conv1d.weight": conv, "ssm_a": -0.1 * heads, "ssm_dt.bias": heads}
    return vectors


def add_weights(writer: gguf.GGUFWriter, shape: Shape) -> None:
    rng = np.random.default_rng(0)

    def random(name: str, size: tuple[int, ...]) -> None:
        deviation = 0.02 if shape.gain is None else shape.gain * size[-1] ** -0.5
        writer.add_tensor(name, (rng.standard_normal(size, dtype=np.float32) * deviation).astype(np.float16))

    random("token_embd.weight", (shape.vocab_size, shape.hidden_size))
    for layer in range(shape.n_layers):
        for name, vector in vectors_of(shape, layer).items():
            writer.add_tensor(f"blk.{layer}.{name}", vector)
        for name, matrix in matrices_of(shape, layer).items():
            random(f"blk.{layer}.{name}.weight", matrix)
    writer.add_tensor("output_norm.weight", np.ones(shape.hidden_size, np.float32))
    if shape.gain is not None:
        random("output.weight", (shape.vocab_size, shape.hidden_size))


def quantise(source: Path, target: Path, qtype: str, llama: Any, importance: Any = None, pure: bool = False) -> None:
    """`importance`: of columns, a list of llama_model_imatrix_data that ends with a nameless one. `pure`: all matrices
    whose rows have whole blocks get the one type, instead of a mixture."""
    parameters = llama.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize = FILE_TYPES[qtype], True
    parameters.nthread, parameters.pure = 0, pure
    if importance is not None:
        parameters.imatrix = ctypes.cast(importance, type(parameters.imatrix))
    failed = llama.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(parameters))
    if failed:
        raise SystemExit(f"llama.cpp could not quantise {source} to {qtype}")
