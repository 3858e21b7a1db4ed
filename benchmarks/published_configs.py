"""What config.json of published models says of their shapes; a number at the end of a name is the layers left of them.

As on the Hugging Face hub in November 2026, in the spelling of transformers.
"""

from typing import Any


def layers(n: int, every: int, rest: str, last: str = "full_attention", first: int = 0) -> list[str]:
    """`last` in every `every`-th of n layers, counted from `first`, and `rest` in the others."""
    return [last if (i - first) % every == every - 1 else rest for i in range(n)]


GRANITE_4_H: dict[str, Any] = {
    "model_type": "granitemoehybrid", "vocab_size": 100_352, "hidden_size": 1536, "num_attention_heads": 12,
    "num_key_value_heads": 4, "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1,
    "position_embedding_type": "nope", "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
    "attention_multiplier": 0.0078125, "logits_scaling": 6.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    "max_position_embeddings": 131_072,
}  # fmt: skip
PUBLISHED: dict[str, dict[str, Any]] = {  # a number at the end of a name: the layers that are left
    "gemma-4-e2b": {
        "model_type": "gemma4_text", "vocab_size": 262_144, "hidden_size": 1536, "intermediate_size": 6144,
        "use_double_wide_mlp": True, "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1,
        "head_dim": 256, "global_head_dim": 512, "sliding_window": 512, "num_kv_shared_layers": 20,
        "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262_144, "final_logit_softcapping": 30.0,
        "layer_types": layers(35, 5, "sliding_attention"), "tie_word_embeddings": True,
    },
    "gpt-oss-20b-4": {
        "model_type": "gpt_oss", "vocab_size": 201_088, "hidden_size": 2880, "intermediate_size": 2880,
        "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "sliding_window": 128, "num_local_experts": 32, "num_experts_per_tok": 4, "tie_word_embeddings": False,
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 150_000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 4096, "truncate": False,
        },
    },
    "lfm2-1.2b": {
        "model_type": "lfm2", "vocab_size": 65_536, "hidden_size": 2048, "intermediate_size": 12_288,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "conv_L_cache": 3,
        "layer_types": ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0}, "tie_word_embeddings": True,
    },
    "granite-4-h-1b": GRANITE_4_H | {
        "num_hidden_layers": 40, "layer_types": layers(40, 10, "linear_attention", first=6), "num_local_experts": 0,
        "num_experts_per_tok": 0, "intermediate_size": 4096, "shared_intermediate_size": 4096,
    },
    "granite-4-h-tiny-10": GRANITE_4_H | {
        "num_hidden_layers": 10, "layer_types": layers(10, 10, "linear_attention", first=6), "num_local_experts": 64,
        "num_experts_per_tok": 6, "intermediate_size": 512, "shared_intermediate_size": 1024,
    },
}  # fmt: skip
