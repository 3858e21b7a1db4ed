"""Defaults of the config classes of transformers (5.23) for keys that a config.json leaves out: one row a class.

A row has every key of its class that changes what is computed; other keys of a config.json are not read. None stands
for what a class works out from other keys, as is done here, and for what there is not.
"""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]


def _sizes(
    vocab: int,
    hidden: int,
    ffn: int,
    layers: int | None,
    heads: int,
    kv_heads: int | None,
    head_dim: int | None,
    context: int,
) -> dict[str, Any]:
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


def _rope(theta: float) -> dict[str, Any]:
    return {"rope_theta": theta, "partial_rotary_factor": None, "rope_parameters": None, "rope_scaling": None}


_USUAL: Values = {"rms_norm_eps": 1e-6, "hidden_act": "silu"}
_LARGER_EPS: Values = {"rms_norm_eps": 1e-5, "hidden_act": "silu"}
_BIAS: Values = {"attention_bias": False}
_BIASES: Values = {"attention_bias": False, "mlp_bias": False}
_FLAGGED: Values = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}
_LINEAR: Values = {
    **_USUAL,
    **_BIAS,
    **_rope(1e4),
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "layer_types": None,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.25,
}
_MIXTURE: Values = {"decoder_sparse_step": 1, "mlp_only_layers": None}
_GEMMA: Values = {
    **_BIAS,
    "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 4096,
    "layer_types": None,
    "use_bidirectional_attention": None,
    "final_logit_softcapping": None,
}
_GEMMA4: Values = {
    **_GEMMA,
    "rope_parameters": None,
    "rope_scaling": None,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "attention_k_eq_v": False,
    "per_layer_config": None,
    "global_head_dim": 512,
    "num_global_key_value_heads": None,
}
_GRANITE: Values = dict.fromkeys(
    ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"), 1.0
)
_LFM2: Values = {
    **_rope(1e6),
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "layer_types": None,
}
_QWEN2_VL: Values = {
    **_sizes(152_064, 8192, 29568, 80, 64, 8, None, 32768),
    **_LARGER_EPS,
    **_FLAGGED,
    "max_window_layers": 80,
    **{key: value for key, value in _rope(1e6).items() if key != "partial_rotary_factor"},  # whole heads turn
}

CLASSES: dict[str, Values] = {
    "llama": {**_sizes(32000, 4096, 11008, 32, 32, None, None, 2048), **_rope(1e4), **_USUAL, **_BIASES},
    "mistral": {
        **_sizes(32000, 4096, 14336, 32, 32, 8, None, 131_072),
        **_rope(1e4),
        **_USUAL,
        "sliding_window": 4096,
    },
    "ministral3": {
        **_sizes(131_072, 4096, 14336, 34, 32, 8, 128, 262_144),
        **_rope(1e4),
        **_LARGER_EPS,
        "sliding_window": None,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    },
    "mixtral": {
        **_sizes(32000, 4096, 14336, 32, 32, 8, None, 131_072),
        **_rope(1e6),
        **_LARGER_EPS,
        "sliding_window": None,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "qwen2": {**_sizes(151_936, 4096, 22016, 32, 32, 32, None, 32768), **_rope(1e4), **_USUAL, **_FLAGGED},
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen3": {**_sizes(151_936, 4096, 22016, 32, 32, 32, 128, 32768), **_rope(1e4), **_USUAL, **_BIAS, **_FLAGGED},
    "qwen3_vl_text": {**_sizes(151_936, 4096, 22016, 32, 32, 32, 128, 128_000), **_rope(5e5), **_USUAL, **_BIAS},
    "qwen3_moe": {
        **_sizes(151_936, 2048, 6144, 24, 32, 4, None, 32768),
        **_rope(1e4),
        **_USUAL,
        **_BIAS,
        **_MIXTURE,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": False,
    },
    "qwen3_next": {
        **_sizes(151_936, 2048, 5632, 48, 16, 2, 256, 32768),
        **_LINEAR,
        **_MIXTURE,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "norm_topk_prob": True,
        "shared_expert_intermediate_size": 512,
    },
    "qwen3_5_text": {**_sizes(248_320, 4096, 12288, 32, 16, 4, 256, 32768), **_LINEAR},
    "qwen3_5_moe_text": {
        **_sizes(248_320, 2048, 0, 40, 16, 2, 256, 32768),  # no layer is dense
        **_LINEAR,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    },
    "gemma2": {
        **_sizes(256_000, 2304, 9216, 26, 8, 4, 256, 8192),
        **_rope(1e4),
        **_GEMMA,
        "query_pre_attn_scalar": 256,
        "final_logit_softcapping": 30.0,
        "attn_logit_softcapping": 50.0,
    },
    "gemma3_text": {
        **_sizes(262_208, 2304, 9216, 26, 8, 4, 256, 131_072),
        **_rope(1e6),
        **_GEMMA,
        "rope_local_base_freq": 10_000.0,
        "sliding_window_pattern": 6,
        "query_pre_attn_scalar": 256,
        "attn_logit_softcapping": None,
        "use_bidirectional_attention": False,
    },
    "gemma4_text": {
        **_sizes(262_144, 2304, 9216, 30, 8, 4, 256, 131_072),
        **_GEMMA4,
        "sliding_window": 512,
        "hidden_size_per_layer_input": 256,
        "enable_moe_block": False,
        "num_experts": None,
        "top_k_experts": None,
        "moe_intermediate_size": None,
    },
    "gemma4_unified_text": {
        **_sizes(262_144, 2304, 9216, 30, 8, 4, 256, 262_144),
        **_GEMMA4,
        "sliding_window": 1024,
        "use_bidirectional_attention": "vision",
    },
    "phi3": {
        **_sizes(32064, 3072, 8192, 32, 32, None, None, 4096),
        **_rope(1e4),
        **_LARGER_EPS,
        "sliding_window": None,
        "original_max_position_embeddings": 4096,
    },
    "olmo2": {**_sizes(50304, 4096, 11008, 32, 32, None, None, 2048), **_rope(1e4), **_LARGER_EPS, **_BIAS},
    "olmo3": {
        **_sizes(50304, 4096, 11008, 32, 32, None, None, 2048),
        **_rope(5e5),
        **_LARGER_EPS,
        **_BIAS,
        "sliding_window": 4096,
        "layer_types": None,
    },
    "granite": {**_sizes(32000, 4096, 11008, 32, 32, None, None, 2048), **_rope(1e4), **_USUAL, **_BIASES, **_GRANITE},
    "granitemoehybrid": {
        **_sizes(32000, 4096, 11008, 32, 32, None, None, 2048),
        **_rope(1e4),
        **_USUAL,
        **_BIAS,
        **_GRANITE,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 1024,
        "position_embedding_type": None,
        "mamba_n_heads": 128,
        "mamba_n_groups": 1,
        "mamba_d_state": 256,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "time_step_limit": None,
        "layer_types": None,
    },
    "nemotron_h": {
        **_sizes(131_072, 4096, 21504, None, 32, 8, 128, 4096),  # layers are those that it lists
        "layers_block_type": None,
        "hybrid_override_pattern": None,
        "layer_norm_epsilon": 1e-5,
        "mlp_bias": False,
        "mlp_hidden_act": "relu2",
        "mamba_hidden_act": "silu",
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "use_bias": False,
        "mamba_proj_bias": False,
        "time_step_limit": None,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "moe_intermediate_size": 7688,
        "moe_shared_expert_intermediate_size": 7688,
        "moe_latent_size": None,
        "num_experts_per_tok": 2,
        "routed_scaling_factor": 1.0,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
    },
    "smollm3": {
        **_sizes(128_256, 2048, 11008, 36, 16, 4, None, 32768),
        **_rope(2e6),
        **_USUAL,
        **_BIASES,
        "use_sliding_window": False,
        "sliding_window": None,
        "layer_types": None,
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
    },
    "lfm2": {
        **_sizes(65536, 2560, 12288, 32, 32, 8, None, 128_000),
        **_LFM2,
        "full_attn_idxs": None,
        "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True,
    },
    "lfm2_moe": {
        **_sizes(65536, 2048, 7168, 32, 32, 8, None, 128_000),
        **_LFM2,
        "num_dense_layers": 2,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1792,
        "routed_scaling_factor": 1.0,
        "norm_topk_prob": True,
        "use_expert_bias": True,
    },
    "gpt_oss": {
        **_sizes(201_088, 2880, 2880, 36, 64, 8, 64, 131_072),
        **_rope(150_000.0),
        **_LARGER_EPS,
        "attention_bias": True,
        "sliding_window": 128,
        "layer_types": None,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0,
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    },
}
