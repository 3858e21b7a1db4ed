"""Impossible config.json files: a ModelFileError each, quickly and in little memory."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.malformed import refused
from localrun_testing.tiny_models import changed

from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config, read_weight_refs

TinyFile = Callable[..., Path]


def check(path: Path) -> None:
    """Everything that is looked at before a weight is read."""
    source = open_safetensors(path)
    read_weight_refs(source, read_config(source))


def rope(**values: Any) -> dict[str, Any]:
    return {"rope_scaling": values}


CONFIG = "BAD_CONFIG"
LONG = {"type": "longrope", "short_factor": [1.0] * 12, "long_factor": [2.0] * 12}
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "eps NaN": ("llama", {"rms_norm_eps": math.nan}, CONFIG),
    "eps infinite": ("llama", {"rms_norm_eps": math.inf}, CONFIG),
    "layers as text": ("llama", {"num_hidden_layers": "3"}, CONFIG),
    "layers null": ("llama", {"num_hidden_layers": None}, CONFIG),
    "layers true": ("llama", {"num_hidden_layers": True}, CONFIG),
    "layers in a dictionary": ("llama", {"num_hidden_layers": {"n": 3}}, CONFIG),
    "layers negative": ("llama", {"num_hidden_layers": -3}, CONFIG),
    "layers 10^400": ("llama", {"num_hidden_layers": 10**400}, CONFIG),
    "a billion layers": ("llama", {"num_hidden_layers": 10**9}, CONFIG),
    "hidden size negative": ("llama", {"hidden_size": -96}, CONFIG),
    "heads 0": ("llama", {"num_attention_heads": 0}, CONFIG),
    "heads that kv heads do not divide": ("llama", {"num_key_value_heads": 4}, CONFIG),
    "head size negative": ("llama", {"head_dim": -32}, CONFIG),
    "no vocabulary size": ("llama", {"vocab_size": ...}, "BAD_TENSOR"),
    "vocabulary of another model": ("llama", {"vocab_size": 301}, "BAD_TENSOR"),
    "context 0": ("llama", {"max_position_embeddings": 0}, CONFIG),
    "theta 0": ("llama", {"rope_theta": 0}, CONFIG),
    "theta as text": ("llama", {"rope_theta": "10000"}, CONFIG),
    "theta negative, newer spelling": ("llama", {"rope_parameters": {"rope_theta": -1.0}}, CONFIG),
    "window negative": ("mistral", {"sliding_window": -16}, CONFIG),
    "window as text": ("mistral", {"sliding_window": "16"}, CONFIG),
    "layer types of another length": ("gemma2", {"layer_types": ["sliding_attention"] * 3}, CONFIG),
    "layer types unheard of": ("gemma2", {"layer_types": ["chunked_attention"] * 4}, "UNSUPPORTED"),
    "layer types is text": ("gemma2", {"layer_types": "sliding_attention"}, CONFIG),
    "flags of rope of another length": ("smollm3", {"no_rope_layers": [1, 0]}, CONFIG),
    "bases of rope of another length": ("muse-glimmer", {"layer_rope_theta": [1e4, 0]}, CONFIG),
    "bases of rope are text": ("muse-glimmer", {"layer_rope_theta": "10000"}, CONFIG),
    "a layer with another base of rope": ("muse-glimmer", {"layer_rope_theta": [1e4, 1e4, 5e5, 0, 1e4]}, "UNSUPPORTED"),
    "another eps of norms after a block": ("muse-glimmer", {"post_norm_eps": 1e-5}, "UNSUPPORTED"),
    "queries times nothing": ("muse-glimmer", {"qk_scale_factor": 0.0}, CONFIG),
    "rope interval 0": ("smollm3", {"no_rope_layers": ..., "no_rope_layer_interval": 0}, CONFIG),
    "convolutions and attention unnamed": ("lfm2", {"full_attn_idxs": ...}, CONFIG),
    "convolutions unheard of": ("lfm2-moe", {"layer_types": ["wobble"] * 6}, CONFIG),
    "convolutions of too few layers": ("lfm2-moe", {"layer_types": ["conv"]}, CONFIG),
    "convolutions with biases": ("lfm2", {"conv_bias": True}, "UNSUPPORTED"),
    "a convolution of one tap": ("lfm2", {"conv_L_cache": 1}, CONFIG),
    "multiples of 0": ("lfm2", {"block_multiple_of": 0}, CONFIG),
    "a state of no whole heads": ("granite-hybrid", {"mamba_n_heads": 5}, CONFIG),
    "heads of no whole groups": ("granite-hybrid", {"mamba_n_groups": 4}, CONFIG),
    "states of another size": ("granite-hybrid", {"mamba_d_state": 32}, "BAD_TENSOR"),
    "states with other biases": ("granite-hybrid", {"mamba_proj_bias": True}, "UNSUPPORTED"),
    "states with limited steps": ("granite-hybrid", {"time_step_limit": [0.0, 1.0]}, "UNSUPPORTED"),
    "states and attention unnamed": ("granite-hybrid", {"layer_types": ...}, CONFIG),
    "states unheard of": ("granite-hybrid", {"layer_types": ["wobble"] * 4}, CONFIG),
    "blocks uncounted": ("nemotron-h", {"hybrid_override_pattern": ...}, CONFIG),
    "blocks unheard of": ("nemotron-h", {"layers_block_type": ["wobble"] * 8}, "UNSUPPORTED"),
    "blocks without memory": ("nemotron-h", {"layers_block_type": ["mlp"] * 8}, CONFIG),
    "blocks in place of others": ("nemotron-h", {"layers_block_type": ["mlp"] * 7 + ["mamba"]}, "MISSING_TENSOR"),
    "blocks with another activation": ("nemotron-h", {"mlp_hidden_act": "silu"}, "UNSUPPORTED"),
    "experts that read a latent": ("nemotron-h-moe", {"moe_latent_size": 32}, "UNSUPPORTED"),
    "latents of nothing": ("deepseek-v3", {"kv_lora_rank": 0}, CONFIG),
    "latents of 2^31": ("deepseek-v3", {"kv_lora_rank": 1 << 31}, CONFIG),
    "latents of null": ("deepseek-v3", {"kv_lora_rank": None}, CONFIG),
    "latents of another rank": ("deepseek-v3", {"kv_lora_rank": 48}, "BAD_TENSOR"),
    "latents of no keys": ("deepseek-v3", {"qk_nope_head_dim": 0}, CONFIG),
    "latents of other keys": ("deepseek-v3", {"qk_nope_head_dim": 16}, "BAD_TENSOR"),
    "latents of keys alone": ("deepseek-v3", {"qk_nope_head_dim": 72}, "BAD_TENSOR"),
    "latents of other values": ("deepseek-v3", {"v_head_dim": 24}, "BAD_TENSOR"),
    "latents and an odd rope": ("deepseek-v3", {"qk_rope_head_dim": 15}, CONFIG),
    "latents and a part of a rope": ("deepseek-v3", {"partial_rotary_factor": 0.5}, "UNSUPPORTED"),
    "latents for groups of heads": ("deepseek-v3", {"num_key_value_heads": 3}, CONFIG),
    "latents with biases": ("deepseek-v3", {"attention_bias": True}, "UNSUPPORTED"),
    "queries of another latent": ("deepseek-v3", {"q_lora_rank": 48}, "BAD_TENSOR"),
    "queries of no latent": ("deepseek-v3", {"q_lora_rank": None}, "MISSING_TENSOR"),
    "dense layers unheard of": ("glm-4.7-flash", {"mlp_layer_types": ["dense", "wobble", "sparse"]}, CONFIG),
    "dense layers of another number": ("glm-4.7-flash", {"mlp_layer_types": ["dense"]}, CONFIG),
    "experts chosen unheard of": ("deepseek-v2-lite", {"topk_method": "wobble"}, "UNSUPPORTED"),
    "experts in groups for nothing": ("deepseek-v2-lite", {"n_group": 4}, "UNSUPPORTED"),
    "experts that sum to one": ("deepseek-v2-lite", {"norm_topk_prob": True}, "UNSUPPORTED"),
    "networks with biases": ("deepseek-v2-lite", {"mlp_bias": True}, "UNSUPPORTED"),
    "more experts used than there are": ("qwen2-moe", {"num_experts_per_tok": 7}, CONFIG),
    "experts of another count": ("qwen2-moe", {"num_experts": 5}, "BAD_TENSOR"),
    "no experts": ("qwen2-moe", {"num_experts": 0}, "MISSING_TENSOR"),
    "dense layers that are text": ("qwen2-moe", {"mlp_only_layers": "0"}, CONFIG),
    "biases that are denied": ("qwen2-moe", {"qkv_bias": False}, "UNSUPPORTED"),
    "a shared expert of another size": ("granite-moe-shared", {"shared_intermediate_size": 64}, "BAD_TENSOR"),
    "a shared expert that is denied": ("granite-moe-shared", {"shared_intermediate_size": 0}, "UNSUPPORTED"),
    "logits divided by 0": ("granite-moe", {"logits_scaling": 0}, CONFIG),
    "experts of rows that no tile has": ("granite-moe", {"intermediate_size": 50}, "UNSUPPORTED"),
    "tokens that see those after them": ("gemma", {"use_bidirectional_attention": True}, "UNSUPPORTED"),
    "exact gelu": ("llama", {"hidden_act": "gelu"}, "UNSUPPORTED"),
    "no size of the dense part": ("granite-hybrid", {"shared_intermediate_size": ...}, "BAD_TENSOR"),
    "unknown activation": ("llama", {"hidden_act": "quick_snail"}, "UNSUPPORTED"),
    "activation is a list": ("llama", {"hidden_act": ["silu"]}, "UNSUPPORTED"),
    "unknown architecture": ("llama", {"architectures": ["QuokkaForCausalLM"]}, "UNSUPPORTED"),
    "unknown architecture with code": (
        "llama",
        {"architectures": ["QuokkaForCausalLM"], "auto_map": {"AutoModelForCausalLM": "evil.Quokka"}},
        "UNSUPPORTED",
    ),
    "architectures is a number": ("llama", {"architectures": 7}, "UNSUPPORTED"),
    "neither architectures nor a known type": ("llama", {"architectures": [], "model_type": "quokka"}, "UNSUPPORTED"),
    "neither architectures nor type": ("llama", {"architectures": ..., "model_type": ...}, "UNSUPPORTED"),
    "a type that is a list": ("llama", {"architectures": ..., "model_type": ["llama"]}, "UNSUPPORTED"),
    "a type of language model that is a list": ("qwen3-vl", {"text_config": {"model_type": []}}, "BAD_TENSOR"),
    "another limit of the activation": ("gpt-oss", {"swiglu_limit": 6.0}, "UNSUPPORTED"),
    "another slope of the activation": ("gpt-oss", {"swiglu_alpha": 1.0}, "UNSUPPORTED"),
    "experts in other codes": (
        "gpt-oss",
        {"quantization_config": {"quant_method": "hqq"}},
        "UNSUPPORTED",
    ),
    "quantisation is text": ("gpt-oss", {"quantization_config": "hqq"}, "UNSUPPORTED"),
    "unknown rope scaling": ("llama", rope(rope_type="wobble", factor=2.0), "UNSUPPORTED"),
    "rope scaling without a type": ("llama", rope(factor=2.0), CONFIG),
    "rope scaling is a list": ("llama", {"rope_scaling": [2.0]}, CONFIG),
    "rope scaling is text": ("llama", {"rope_scaling": "linear"}, CONFIG),
    "rope type is a list": ("llama", rope(rope_type=["linear"], factor=2.0), CONFIG),
    "linear rope without a factor": ("llama", rope(rope_type="linear"), CONFIG),
    "linear rope, factor as text": ("llama", rope(rope_type="linear", factor="2"), CONFIG),
    "linear rope, factor 0": ("llama", rope(rope_type="linear", factor=0), CONFIG),
    "yarn, attention factor as text": ("llama", rope(rope_type="yarn", factor=4.0, attention_factor="1"), CONFIG),
    "yarn, beta 0": ("llama", rope(rope_type="yarn", factor=4.0, beta_slow=0), CONFIG),
    "yarn, mscale as a list": ("llama", rope(rope_type="yarn", factor=4.0, mscale=[1], mscale_all_dim=1), CONFIG),
    "llama3, low above high": (
        "llama",
        rope(rope_type="llama3", factor=8.0, low_freq_factor=4.0, high_freq_factor=1.0),
        CONFIG,
    ),
    "longrope, too few factors": ("phi3-longrope", rope(**LONG | {"long_factor": [1.0] * 11}), CONFIG),
    "longrope, a factor of 0": ("phi3-longrope", rope(**LONG | {"short_factor": [0.0] * 12}), CONFIG),
    "longrope, factors as text": ("phi3-longrope", rope(**LONG | {"short_factor": ["1"] * 12}), CONFIG),
    "longrope, a huge factor": ("phi3-longrope", rope(**LONG | {"short_factor": [10**400] * 12}), CONFIG),
    "longrope from no context": ("phi3-longrope", {"original_max_position_embeddings": 0}, CONFIG),
    "half a dim rotates": ("phi3-longrope", {"partial_rotary_factor": 0.016}, CONFIG),
    "more dims rotate than there are": ("phi3-longrope", {"partial_rotary_factor": 2.0}, CONFIG),
    "rotary factor as text, newer spelling": (
        "phi3",
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": "x"}},
        CONFIG,
    ),
    "weights quantised by another tool": ("llama", {"quantization_config": {"quant_method": "aqlm"}}, "UNSUPPORTED"),
    "text_config is a list": ("gemma3", {"text_config": [1]}, CONFIG),
}


@pytest.mark.parametrize("case", CASES)
def test_config_json(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    name, changes, code = CASES[case]
    text = json.dumps(changed(json.loads((tiny_folder(name) / "config.json").read_text()), **changes))
    refused(with_config(tiny_folder(name), tmp_path, text), code, check)


NOT_CONFIGS = ("", "{", "[]", "null", "7", '"llama"', "\x00" * 64, "{'a': 1}")
HUGE_CONFIGS = {
    "lists 5 million deep": ('{"a": ' + "[" * 5_000_000 + "]" * 5_000_000 + "}", "TOO_BIG"),
    "objects 100,000 deep": ('{"a": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, CONFIG),
    "a number of 100,000 digits": ('{"num_hidden_layers": ' + "9" * 100_000 + "}", CONFIG),
}


@pytest.mark.parametrize("text", NOT_CONFIGS)
def test_config_json_that_is_not_a_config(text: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    refused(with_config(tiny_folder("llama"), tmp_path, text), CONFIG, check)


@pytest.mark.parametrize("case", HUGE_CONFIGS)
def test_config_json_that_is_huge(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    text, code = HUGE_CONFIGS[case]
    refused(with_config(tiny_folder("llama"), tmp_path, text), code, check)


def test_remote_code_of_a_known_architecture_is_left_alone(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Real Phi-3 folders name Python files of their own; nothing of them is ever run."""
    values = json.loads((tiny_folder("phi3") / "config.json").read_text())
    values["auto_map"] = {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}
    folder = with_config(tiny_folder("phi3"), tmp_path, json.dumps(values))
    (folder / "modeling_phi3.py").write_text("raise SystemExit('this must never run')")
    check(folder)


def with_config(folder: Path, target: Path, text: str) -> Path:
    """A copy of a model folder with another config.json."""
    for file in folder.iterdir():
        if file.name != "config.json":
            shutil.copy(file, target)
    (target / "config.json").write_text(text)
    return target


def test_the_originals_pass(tiny_folder: TinyFile) -> None:
    for name in sorted({name for name, *_ in CASES.values()}):
        check(tiny_folder(name))
