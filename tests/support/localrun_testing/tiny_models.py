"""Tiny random checkpoints of every supported architecture, written as transformers writes them.

Each one is small but odd: grouped heads, a head size unlike hidden/heads where the architecture allows it, windows and
patterns that matter within 80 tokens, and norms, biases and softcaps far from their harmless defaults.
"""

import copy
import inspect
import json
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gguf
import torch
import transformers as _transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from localrun_testing.gguf_convert import encode
from localrun_testing.kept import kept

transformers: Any = _transformers  # its annotations are partial
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
transformers.PreTrainedConfig.__repr__ = object.__repr__  # for a log that is off, it makes every config a second time

VOCAB_SIZE = 300
BOS_ID, EOS_ID = 0, 1
NEVER_NARROWED = (  # matrices that are F32 in a GGUF
    "conv1d.weight",
    "conv.conv.weight",
    "mlp.gate.weight",
    "feed_forward.gate.weight",
    "mixer.gate.weight",
    "shared_expert_gate.weight",
)
OLDER_KINDS = {"linear_attention": "mamba", "full_attention": "attention"}
Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A recipe. `config` is transformers' own spelling; the two views say what a GGUF of it can express, and what
    llama.cpp then makes of that, as changes to the same config (a window that no key holds, for instance). `vision` is
    the config of the eyes of a model that also sees, `between` what such a config has beside it and the text's.
    """

    model_type: str
    config: Config
    gguf_view: Config = field(default_factory=dict)
    llama_cpp_view: Config = field(default_factory=dict)
    vision: Config | None = None
    between: Config = field(default_factory=dict)


def _config(**changes: Any) -> dict[str, Any]:
    return {
        "hidden_size": 96,
        "intermediate_size": 160,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "vocab_size": VOCAB_SIZE,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "pad_token_id": None,
        "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        **changes,
    }


def _llama_that_sees(**changes: Any) -> dict[str, Any]:
    return {**_config(head_dim=24, **changes), "model_type": "llama"}


def _gemma(**changes: Any) -> dict[str, Any]:
    return _config(
        head_dim=24,
        query_pre_attn_scalar=24,
        sliding_window=16,
        tie_word_embeddings=True,
        hidden_activation="gelu_pytorch_tanh",
        **changes,
    )


def _granite_hybrid(**changes: Any) -> dict[str, Any]:
    kinds = ["linear_attention", "full_attention", "linear_attention", "linear_attention"]
    settings = _config(num_hidden_layers=4, layer_types=kinds, tie_word_embeddings=True, shared_intermediate_size=160)
    mamba = {"mamba_n_heads": 6, "mamba_n_groups": 2, "mamba_d_state": 24, "mamba_d_head": 32, "mamba_d_conv": 4}
    return {**settings, **mamba, **_GRANITE_SCALES, **changes}


def _granite_moe(**changes: Any) -> dict[str, Any]:
    experts = {"num_local_experts": 6, "num_experts_per_tok": 3}
    settings = {**experts, **_GRANITE_SCALES, **changes}
    return _config(tie_word_embeddings=True, **settings) | {"intermediate_size": 48}


def _nemotron_h(kinds: str, **changes: Any) -> dict[str, Any]:
    words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    mamba = {"mamba_num_heads": 6, "mamba_head_dim": 32, "n_groups": 2, "ssm_state_size": 24}
    settings = _config(layers_block_type=[words[kind] for kind in kinds], head_dim=24, layer_norm_epsilon=1e-5)
    for unused in ("num_hidden_layers", "rms_norm_eps", "rope_parameters"):
        del settings[unused]
    no_limits = {"time_step_min": 1e-30}  # by which transformers alone limits steps
    return {**settings, **mamba, **no_limits, **changes}


def _latent(**changes: Any) -> dict[str, Any]:
    sizes = {"kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 16, "v_head_dim": 48}
    experts = {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 48, "n_shared_experts": 2}
    scale = {"routed_scaling_factor": 1.8, "rms_norm_eps": 1e-6}  # which its classes give the norms of latents
    return _config(num_key_value_heads=6, **sizes, **experts) | scale | changes


def _lfm2(**changes: Any) -> dict[str, Any]:
    kinds = ["conv", "conv", "full_attention", "conv", "full_attention", "conv"]
    settings = _config(num_hidden_layers=6, layer_types=kinds, tie_word_embeddings=True, norm_eps=1e-5, **changes)
    del settings["rms_norm_eps"]
    return settings


def _gemma4(**changes: Any) -> dict[str, Any]:
    changes = {"final_logit_softcapping": 5.0, "global_head_dim": 48, "rope_parameters": _GEMMA4_ROPE, **changes}
    return {key: value for key, value in _gemma(**changes).items() if key != "query_pre_attn_scalar"}


_GRANITE_SCALES = {
    "embedding_multiplier": 6.0,
    "residual_multiplier": 0.4,
    "attention_multiplier": 0.15,
    "logits_scaling": 2.5,
}
_GEMMA4_ROPE = {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 50_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0},
}
_GEMMA2_CAPS = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 5.0}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
_LATENT_YARN = {**_YARN, "factor": 40.0, "beta_fast": 32.0, "beta_slow": 1.0}
_GEMMA3_ROPE = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 50_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0},
}
_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0 + 0.05 * i for i in range(12)],
    "long_factor": [1.5 + 0.9 * i for i in range(12)],
}
_MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
_QUARTER_MROPE = {**_MROPE, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.25}
_UNEVEN_YARN = {  # whose ramp begins and ends between pairs
    **_YARN,
    "rope_theta": 1500.0,
    "original_max_position_embeddings": 256,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}
_QWEN_EYES = {"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48}
_PIXTRAL_EYES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "head_dim": 16,
}
_SIGLIP_EYES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
_LFM2_EYES = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_patches": 16,
    "patch_size": 4,
}
_GEMMA4_EYES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "position_embedding_size": 64,
}
_NO_EPS = {"rms_norm_eps": 0.0}  # llama.cpp does not read it for qwen2vl
_FULL = {"sliding_window": None}
_NO_WINDOW = {"use_sliding_window": False}

TINY_MODELS: dict[str, TinyModel] = {
    "llama": TinyModel("llama", _config(head_dim=32)),
    "llama-llama3-rope": TinyModel(
        "llama", _config(head_dim=24, tie_word_embeddings=True, rope_parameters=_LLAMA3_ROPE)
    ),
    "llama-biases": TinyModel(
        "llama",
        _config(
            attention_bias=True,
            mlp_bias=True,
            rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
        ),
    ),
    "mistral": TinyModel("mistral", _config(head_dim=24, sliding_window=16), gguf_view=_FULL, llama_cpp_view=_FULL),
    "mistral-full": TinyModel("mistral", _config(head_dim=24, sliding_window=None)),
    "idefics3": TinyModel("idefics3", _llama_that_sees(), vision=_SIGLIP_EYES),
    "smolvlm": TinyModel("smolvlm", _llama_that_sees(tie_word_embeddings=True), vision=_SIGLIP_EYES),
    "qwen2": TinyModel("qwen2", _config(tie_word_embeddings=True)),
    "qwen2-window": TinyModel(
        "qwen2",
        _config(num_hidden_layers=4, use_sliding_window=True, sliding_window=16, max_window_layers=2),
        gguf_view=_NO_WINDOW,
        llama_cpp_view=_NO_WINDOW,
    ),
    "qwen2-moe": TinyModel(
        "qwen2_moe",
        _config(
            use_sliding_window=True,
            sliding_window=16,
            max_window_layers=2,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=80,
        ),
        gguf_view=_NO_WINDOW,
        llama_cpp_view=_NO_WINDOW,
    ),
    "qwen3": TinyModel("qwen3", _config(head_dim=40)),
    "qwen3-yarn": TinyModel(
        "qwen3",
        _config(head_dim=32, rope_parameters=_YARN),
    ),
    "qwen2-vl": TinyModel(
        "qwen2_vl",
        _config(rope_parameters=_MROPE),
        llama_cpp_view=_NO_EPS,
        vision={**_QWEN_EYES, "hidden_size": 96},
    ),
    "qwen2.5-vl": TinyModel(
        "qwen2_5_vl",
        _config(rope_parameters=_MROPE, tie_word_embeddings=True),
        llama_cpp_view=_NO_EPS,
        vision={**_QWEN_EYES, "out_hidden_size": 96, "fullatt_block_indexes": [0]},
    ),
    "qwen3-vl": TinyModel(
        "qwen3_vl",
        _config(head_dim=40, rope_parameters={**_MROPE, "mrope_section": [7, 7, 6], "mrope_interleaved": True}),
        vision={**_QWEN_EYES, "out_hidden_size": 96, "deepstack_visual_indexes": [0]},
    ),
    "mistral-small-3": TinyModel(
        "mistral3",
        {**_config(head_dim=24, sliding_window=None), "model_type": "mistral"},
        vision=_PIXTRAL_EYES,
    ),
    "ministral-3": TinyModel(
        "mistral3",
        {
            **_config(head_dim=24, sliding_window=None, tie_word_embeddings=True),
            "model_type": "ministral3",
            "rope_parameters": {
                **_YARN,
                "original_max_position_embeddings": 16,
                "beta_fast": 8.0,
                "beta_slow": 0.5,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.4,
            },
        },
        vision=_PIXTRAL_EYES,
    ),
    "qwen3.5": TinyModel(
        "qwen3_5_text",
        _config(
            num_hidden_layers=5,
            head_dim=32,
            rope_parameters=_QUARTER_MROPE,
            linear_conv_kernel_dim=4,
            linear_num_key_heads=2,
            linear_num_value_heads=6,
            linear_key_head_dim=32,
            linear_value_head_dim=32,
            full_attention_interval=4,
            sliding_window=None,
        ),
    ),
    "qwen3.5-moe": TinyModel(
        "qwen3_5_moe_text",
        _config(
            num_hidden_layers=4,
            head_dim=32,
            rope_parameters=_QUARTER_MROPE,
            linear_num_key_heads=4,
            linear_num_value_heads=4,
            linear_key_head_dim=32,
            linear_value_head_dim=32,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=80,
            sliding_window=None,
        ),
    ),
    "qwen3-next": TinyModel(
        "qwen3_next",
        _config(
            num_hidden_layers=4,
            head_dim=32,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
            linear_num_key_heads=2,
            linear_num_value_heads=6,
            linear_key_head_dim=32,
            linear_value_head_dim=32,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=80,
            norm_topk_prob=True,
        ),
    ),
    "qwen3-moe": TinyModel(
        "qwen3_moe",
        _config(
            head_dim=32,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
            norm_topk_prob=True,
            sliding_window=None,
        ),
    ),
    "qwen3-vl-moe": TinyModel(
        "qwen3_vl_moe",
        _config(
            head_dim=32,
            rope_parameters={**_MROPE, "mrope_section": [6, 5, 5], "mrope_interleaved": True},
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
        ),
        vision={**_QWEN_EYES, "out_hidden_size": 96, "deepstack_visual_indexes": [0]},
    ),
    "mixtral": TinyModel(
        "mixtral",
        _config(head_dim=24, num_local_experts=4, num_experts_per_tok=2, sliding_window=None),
    ),
    "lfm2": TinyModel("lfm2", _lfm2(block_multiple_of=16, block_ffn_dim_multiplier=1.3)),
    "lfm2-vl": TinyModel("lfm2_vl", _lfm2(block_auto_adjust_ff_dim=False), vision=_LFM2_EYES),
    "lfm2-moe": TinyModel(
        "lfm2_moe",
        _lfm2(
            conv_L_cache=4,
            num_dense_layers=2,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
        ),
    ),
    "gpt-oss": TinyModel(
        "gpt_oss",
        _config(
            head_dim=32,
            attention_bias=True,
            intermediate_size=64,
            num_local_experts=6,
            num_experts_per_tok=3,
            sliding_window=16,
            rope_parameters={**_UNEVEN_YARN, "truncate": False},
        ),
        llama_cpp_view={"rope_parameters": {**_UNEVEN_YARN, "truncate": True}},
    ),
    "gemma": TinyModel(
        "gemma", _config(head_dim=24, tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh", pad_token_id=0)
    ),
    "gemma2": TinyModel("gemma2", _gemma(num_hidden_layers=4, **_GEMMA2_CAPS)),
    # 46 layers is how a GGUF reader recognises the 27B model, whose score scale is not 1/sqrt(head_dim).
    "gemma2-27b": TinyModel(
        "gemma2",
        _gemma(num_hidden_layers=46, **_GEMMA2_CAPS)
        | {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "query_pre_attn_scalar": 16},
    ),
    "gemma3": TinyModel("gemma3_text", _gemma(num_hidden_layers=8) | {"rope_parameters": _GEMMA3_ROPE}),
    "gemma4": TinyModel(
        "gemma4_text",
        _gemma4(
            num_hidden_layers=7, attention_k_eq_v=True, num_global_key_value_heads=3, hidden_size_per_layer_input=0
        ),
    ),
    "gemma4-e2b": TinyModel(
        "gemma4",
        _gemma4(
            num_hidden_layers=9,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 3,
            num_kv_shared_layers=3,
            use_double_wide_mlp=True,
            hidden_size_per_layer_input=32,
            vocab_size_per_layer_input=VOCAB_SIZE,
            pad_token_id=0,
        ),
        vision=_GEMMA4_EYES,
    ),
    "gemma4-moe": TinyModel(
        "gemma4_text",
        _gemma4(
            num_hidden_layers=3,
            attention_k_eq_v=True,
            hidden_size_per_layer_input=0,
            enable_moe_block=True,
            num_experts=6,
            top_k_experts=3,
            moe_intermediate_size=48,
        ),
    ),
    "gemma4-unified": TinyModel("gemma4_unified_text", _gemma4(num_hidden_layers=7, attention_k_eq_v=True)),
    "phi3": TinyModel("phi3", _config(sliding_window=16), llama_cpp_view=_FULL),
    "phi3-longrope": TinyModel(
        "phi3",
        _config(
            hidden_size=128,
            num_attention_heads=4,
            original_max_position_embeddings=64,
            max_position_embeddings=256,
            rope_parameters=_LONGROPE,
        ),
    ),
    "olmo2": TinyModel("olmo2", _config()),
    "olmo3": TinyModel(
        "olmo3",
        _config(
            num_hidden_layers=5,
            sliding_window=16,
            rope_parameters={
                "full_attention": _YARN,
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
    ),
    "granite": TinyModel("granite", _config(tie_word_embeddings=True, **_GRANITE_SCALES)),
    "granite-moe": TinyModel("granitemoe", _granite_moe()),
    "granite-moe-shared": TinyModel("granitemoeshared", _granite_moe(shared_intermediate_size=80)),
    "granite-hybrid": TinyModel("granitemoehybrid", _granite_hybrid(num_local_experts=0)),
    "granite-hybrid-moe": TinyModel(
        "granitemoehybrid",
        _granite_hybrid(
            num_local_experts=6, num_experts_per_tok=3, intermediate_size=48, position_embedding_type="rope"
        ),
        llama_cpp_view={},
    ),
    "nemotron-h": TinyModel("nemotron_h", _nemotron_h("M-*-MM-*")),
    "nemotron-h-moe": TinyModel(
        "nemotron_h",
        _nemotron_h(
            "MEM*EME",
            n_routed_experts=8,
            num_experts_per_tok=3,
            moe_intermediate_size=48,
            moe_shared_expert_intermediate_size=80,
            routed_scaling_factor=2.5,
        ),
    ),
    "smollm3": TinyModel(
        "smollm3",
        _config(
            num_hidden_layers=5,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 2_000_000.0},
        ),
    ),
    "apertus": TinyModel("apertus", _config(hidden_act="xielu", rope_parameters=_LLAMA3_ROPE)),
    "deepseek-v2-lite": TinyModel(
        "deepseek_v2",
        _latent(
            q_lora_rank=None,
            first_k_dense_replace=1,
            routed_scaling_factor=1.0,
            rope_parameters={**_LATENT_YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
        ),
    ),
    "deepseek-v3": TinyModel(
        "deepseek_v3",
        _latent(
            q_lora_rank=40,
            first_k_dense_replace=1,
            n_group=4,
            topk_group=2,
            rope_parameters={**_LATENT_YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
        ),
    ),
    "glm-4.7-flash": TinyModel("glm4_moe_lite", _latent(q_lora_rank=40, n_shared_experts=1)),
    "muse-glimmer": TinyModel(
        "muse_glimmer",
        _config(
            num_hidden_layers=5,
            head_dim=32,
            sliding_window=16,
            layer_types=[*["sliding_attention"] * 3, "full_attention", "sliding_attention"],
            layer_rope_theta=[10000.0, 10000.0, 10000.0, 0, 10000.0],
            final_logit_softcapping=5.0,
            output_multiplier=0.6,
            qk_scale_factor=2.5,
            rms_norm_eps=0.02,  # far from that of the norms after a block
        ),
        vision={"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2},
        between={"out_hidden_size": 128, "projector_hidden_size": 48},
    ),
}


def build(name: str, **config_changes: Any) -> Any:
    """The fp32 transformers model of a recipe, always the same weights, attention computed eagerly."""
    recipe = TINY_MODELS[name]
    settings = copy.deepcopy({**recipe.config, **config_changes})  # transformers edits the rope settings it is given
    if recipe.vision is None:
        config = transformers.AutoConfig.for_model(recipe.model_type, **settings)
        model_class = transformers.AutoModelForCausalLM
    else:
        nested = {"text_config": settings, "vision_config": dict(recipe.vision), **recipe.between}
        tied = settings["tie_word_embeddings"]
        config = transformers.AutoConfig.for_model(recipe.model_type, **nested, tie_word_embeddings=tied)
        model_class = transformers.AutoModelForImageTextToText
    model = model_class.from_config(config, attn_implementation="eager", dtype=torch.float32)
    randomise(model, seed=zlib.crc32(name.encode()))
    return model.eval()


def randomise(model: torch.nn.Module, seed: int) -> None:
    """Replace every weight so that each matters: norms spread around 1, biases are not zero, logits are well apart."""
    generator = torch.Generator().manual_seed(seed)
    zero_centred = ("GemmaFor", "Gemma2", "Gemma3", "Qwen3_5", "Qwen3Next", "MuseGlimmer")
    zero_centred_norms = type(model).__name__.startswith(zero_centred)
    unscaled_scores = type(model).__name__.startswith("Gemma4")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(("norm.weight", "norm_f.weight")) or "layernorm" in name:
                is_zero_centred = zero_centred_norms and "linear_attn" not in name
                is_zero_centred &= not ("MuseGlimmer" in type(model).__name__ and name.endswith(".norm.weight"))
                parameter.copy_(noise * 0.3 + (0.0 if is_zero_centred else 1.0))
                if unscaled_scores and "q_norm" in name:
                    parameter.mul_(parameter.shape[0] ** -0.5)
            elif name.endswith("A_log"):  # states that last for some tokens, and some that last for hundreds
                parameter.copy_(noise - 2.0)
            elif "act_fn" in name:  # of xIELU: both signs before their softplus
                parameter.copy_(noise * 0.5)
            elif name.endswith("bias"):
                parameter.copy_(noise * 0.3)
            elif name.endswith("sinks"):
                parameter.copy_(noise)
            elif name.endswith("experts.gate_up_proj") and "GptOss" in type(model).__name__:  # the clamp bites
                parameter.copy_(noise * 3.0 * parameter.shape[-1] ** -0.5)
            elif name.endswith("experts.down_proj") and "GptOss" in type(model).__name__:  # up to 56 is multiplied
                parameter.copy_(noise * 0.2 * parameter.shape[-1] ** -0.5)
            elif "embed" in name or "lm_head" in name:
                parameter.copy_(noise * 3.0 * parameter.shape[-1] ** -0.5)
            else:
                parameter.copy_(noise * 1.2 * parameter.shape[-1] ** -0.5)
        for name, buffer in model.named_buffers():
            if name.endswith(("expert_bias", "e_score_correction_bias")):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.1)
            if name.endswith("layer_scalar"):
                buffer.copy_(1.0 + 0.3 * torch.randn(buffer.shape, generator=generator))


def round_weights(model: Any, qtype: str) -> Any:
    """The model with every matrix as it is after a GGUF of type `qtype` was written and read again."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(NEVER_NARROWED):
                continue
            encoded, kind = encode(parameter.numpy(), qtype)
            parameter.copy_(torch.from_numpy(gguf.quants.dequantize(encoded, kind)))
    return model


def save(
    name: str,
    folder: Path,
    *,
    dtype: torch.dtype = torch.float32,
    max_shard_size: str = "1GB",
    hub_config: bool = False,
) -> Path:
    """Write a recipe as a safetensors folder with config and tokenizer, and return the folder.

    `hub_config` rewrites config.json in the older spelling that most published models still have. The folder is a copy
    of one that is kept: what transformers imports to build a model takes seconds.
    """
    makers = [inspect.getsource(maker) for maker in (build, randomise, _write, hub_spelling, save_tokenizer, tokenizer)]
    versions = [version(library) for library in ("transformers", "torch", "tokenizers", "safetensors")]
    how = dtype, max_shard_size, hub_config
    made = kept(lambda path: _write(name, path, *how), name, TINY_MODELS[name], how, makers, versions)
    shutil.copytree(made, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
    return folder


def _write(name: str, folder: Path, dtype: torch.dtype, max_shard_size: str, hub_config: bool) -> None:
    with torch.random.fork_rng(devices=[]):  # what a test draws afterwards is the same where the folder was there
        model = build(name).to(dtype)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    save_tokenizer(folder, TINY_MODELS[name].config["vocab_size"])
    if hub_config:
        path = folder / "config.json"
        path.write_text(json.dumps(hub_spelling(json.loads(path.read_text())), indent=2))


def changed(config: Config, **changes: Any) -> dict[str, Any]:
    """A config.json with other values of its language model; a value of ... drops the key."""
    if isinstance(text := config.get("text_config"), dict) and not changes.keys() & config.keys():
        return {**config, "text_config": changed(text, **changes)}
    return {key: value for key, value in {**config, **changes}.items() if value is not ...}


def hub_spelling(config: Config) -> dict[str, Any]:
    """The same configuration with rope settings at the top level, as transformers wrote it before version 5."""
    if text := config.get("text_config"):
        older_text = hub_spelling(text)
        if not config["model_type"].startswith("qwen2"):
            return {**config, "text_config": older_text}
        older_text["rope_scaling"] = {"type": "mrope", "mrope_section": text["rope_parameters"]["mrope_section"]}
        eyes = {key: config[key] for key in ("architectures", "model_type", "tie_word_embeddings", "vision_config")}
        return older_text | eyes
    older = dict(config)
    if older["model_type"] == "lfm2":
        older["block_ff_dim"] = older.pop("intermediate_size")
        older["full_attn_idxs"] = [i for i, kind in enumerate(older.pop("layer_types")) if kind == "full_attention"]
        older["tie_embedding"] = older.pop("tie_word_embeddings")
    if older["model_type"].startswith("gemma4"):
        full = next(iter(older.pop("per_layer_config").values()))
        return older | {
            "global_head_dim": full["head_dim"],
            "num_global_key_value_heads": full.get("num_key_value_heads"),
        }
    if older["model_type"] == "nemotron_h":
        letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
        older["hybrid_override_pattern"] = "".join(letters[word] for word in older.pop("layers_block_type"))
        return older | {"num_hidden_layers": len(older["hybrid_override_pattern"])}
    if older["model_type"] == "granitemoehybrid":
        older["layer_types"] = [OLDER_KINDS[kind] for kind in older["layer_types"]]
    rope = dict(older.pop("rope_parameters"))
    if older["model_type"] == "gemma3_text":
        older["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        older.pop("layer_types")
        older["sliding_window_pattern"] = 6
    rope = dict(rope.get("full_attention", rope))
    older["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        older["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if older["model_type"] == "phi3":
        rope.pop("original_max_position_embeddings", None)
    kind = rope.pop("rope_type")
    kind_key = "type" if older["model_type"] == "phi3" else "rope_type"  # both are in the wild
    older["rope_scaling"] = None if kind == "default" else {kind_key: kind, **rope}
    if "mrope_section" in rope:
        older["rope_scaling"] = {kind_key: kind, **rope}
    older["torch_dtype"] = older.pop("dtype")
    return older


def tokenizer(vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """A byte-level BPE of exactly `vocab_size` tokens: two control tokens, every byte, some merges, fillers."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocab_size, 280),
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(["the cat sat on the mat and the other cat ran to the hat"], trainer)
    bpe.add_tokens([AddedToken(f"<|{i}|>", normalized=False) for i in range(bpe.get_vocab_size(), vocab_size)])
    return bpe


def save_tokenizer(folder: Path, vocab_size: int = VOCAB_SIZE) -> None:
    """Write tokenizer.json and tokenizer_config.json beside a model."""
    tokenizer(vocab_size).save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_bos_token": True,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
