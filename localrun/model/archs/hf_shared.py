"""Defaults that several config classes of transformers (5.23) share, for the rows of `hf_values.py`."""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]


def sizes(
    vocab: int,
    hidden: int,
    ffn: int,
    layers: int | None,
    heads: int,
    kv_heads: int | None,
    head_dim: int | None,
    context: int,
) -> dict[str, Any]:
    """Sizes that every class has; None where the class derives one from others."""
    return {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": context,
    }


def rope(theta: float) -> dict[str, Any]:
    """Keys of rotary positions with their defaults, except `theta`."""
    return {"rope_theta": theta, "partial_rotary_factor": None, "rope_parameters": None, "rope_scaling": None}


USUAL: Values = {"rms_norm_eps": 1e-6, "hidden_act": "silu"}
LARGER_EPS: Values = {"rms_norm_eps": 1e-5, "hidden_act": "silu"}
BIAS: Values = {"attention_bias": False}
BIASES: Values = {"attention_bias": False, "mlp_bias": False}
FLAGGED: Values = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}
LINEAR: Values = {
    **USUAL,
    **BIAS,
    **rope(1e4),
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "layer_types": None,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.25,
}
MIXTURE: Values = {"decoder_sparse_step": 1, "mlp_only_layers": None}
GEMMA: Values = {
    **BIAS,
    "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 4096,
    "layer_types": None,
    "use_bidirectional_attention": None,
    "final_logit_softcapping": None,
}
GEMMA4: Values = {
    **GEMMA,
    "rope_parameters": None,
    "rope_scaling": None,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "attention_k_eq_v": False,
    "per_layer_config": None,
    "global_head_dim": 512,
    "num_global_key_value_heads": None,
}
GRANITE: Values = dict.fromkeys(
    ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"), 1.0
)
GRANITE_MOE: Values = {
    **sizes(32000, 4096, 11008, 32, 32, None, None, 2048),
    **rope(1e4),
    **USUAL,
    **BIAS,
    **GRANITE,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
LFM2: Values = {
    **rope(1e6),
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "layer_types": None,
}
QWEN2_VL: Values = {
    **sizes(152_064, 8192, 29568, 80, 64, 8, None, 32768),
    **LARGER_EPS,
    **FLAGGED,
    "max_window_layers": 80,
    **{key: value for key, value in rope(1e6).items() if key != "partial_rotary_factor"},  # whole heads turn
}
