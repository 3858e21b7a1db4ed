"""The transformers class of a config.json, and the values that follow from it. Torch-free."""

from collections.abc import Mapping, Sequence
from typing import Any

from localrun.model.archs.hf_shared import Values
from localrun.model.archs.hf_values import CLASSES
from localrun.model.shapes import BIASED

MODEL_TYPES: dict[str, str] = {  # of the architectures that are read: `model_type` of their config.json
    "LlamaForCausalLM": "llama",
    "Idefics3ForConditionalGeneration": "idefics3",
    "SmolVLMForConditionalGeneration": "smolvlm",
    "MistralForCausalLM": "mistral",
    "Ministral3ForCausalLM": "ministral3",
    "Mistral3ForConditionalGeneration": "mistral3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen2VLForConditionalGeneration": "qwen2_vl",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3VLForConditionalGeneration": "qwen3_vl",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3VLMoeForConditionalGeneration": "qwen3_vl_moe",
    "Qwen3NextForCausalLM": "qwen3_next",
    "Qwen3_5ForCausalLM": "qwen3_5_text",
    "Qwen3_5ForConditionalGeneration": "qwen3_5",
    "Qwen3_5MoeForCausalLM": "qwen3_5_moe_text",
    "Qwen3_5MoeForConditionalGeneration": "qwen3_5_moe",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3ForConditionalGeneration": "gemma3",
    "Gemma4ForCausalLM": "gemma4_text",
    "Gemma4ForConditionalGeneration": "gemma4",
    "Gemma4UnifiedForCausalLM": "gemma4_unified_text",
    "Gemma4UnifiedForConditionalGeneration": "gemma4_unified",
    "Phi3ForCausalLM": "phi3",
    "Olmo2ForCausalLM": "olmo2",
    "Olmo3ForCausalLM": "olmo3",
    "GraniteForCausalLM": "granite",
    "GraniteMoeForCausalLM": "granitemoe",
    "GraniteMoeSharedForCausalLM": "granitemoeshared",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "NemotronHForCausalLM": "nemotron_h",
    "SmolLM3ForCausalLM": "smollm3",
    "ApertusForCausalLM": "apertus",
    "MuseGlimmerForConditionalGeneration": "muse_glimmer",
    "MixtralForCausalLM": "mixtral",
    "Lfm2ForCausalLM": "lfm2",
    "Lfm2MoeForCausalLM": "lfm2_moe",
    "Lfm2VlForConditionalGeneration": "lfm2_vl",
    "GptOssForCausalLM": "gpt_oss",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "Glm4MoeLiteForCausalLM": "glm4_moe_lite",
}
TEXT_TYPES: dict[str, str] = {  # of models that also see: that of their language model, where text_config does not say
    "idefics3": "llama",
    "smolvlm": "llama",
    "mistral3": "mistral",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "lfm2_vl": "lfm2",
    "muse_glimmer": "muse_glimmer_text",
}
TIED = (  # the classes whose output is the embedding by default
    *("gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"),
    *("mistral3", "smollm3", "lfm2", "lfm2_moe", "lfm2_vl"),
)
LAYER_LISTS = ("layers_block_type", "hybrid_override_pattern")  # what each layer is, in words, or a letter a layer
_ALWAYS_BIASED = dict.fromkeys(("qwen2", "qwen2_vl_text", "qwen2_5_vl_text"), ("q", "k", "v"))
_NULL_IS_NOTHING = ("rope_parameters", "partial_rotary_factor", "rope_local_base_freq")  # as if the key were left out
ALIASES: dict[str, Mapping[str, str]] = {  # other spellings, by class; they go first, as there
    "mixtral": {"num_experts": "num_local_experts"},
    "gpt_oss": {"num_experts": "num_local_experts"},
    "deepseek_v2": {"num_experts": "n_routed_experts"},
    "deepseek_v3": {"num_local_experts": "n_routed_experts"},
    "glm4_moe_lite": {"num_local_experts": "n_routed_experts", "head_dim": "qk_rope_head_dim"},
    "qwen3_moe": {"num_local_experts": "num_experts"},
    "qwen3_vl_moe_text": {"num_local_experts": "num_experts"},
    "granitemoehybrid": {"layers_block_type": "layer_types"},
    "lfm2": {"block_ff_dim": "intermediate_size"},
    "nemotron_h": {
        "layer_types": "layers_block_type",
        "num_local_experts": "n_routed_experts",
        "mamba_n_groups": "n_groups",
        "mamba_d_conv": "conv_kernel",
        "mamba_conv_bias": "use_conv_bias",
        "mamba_dt_limit": "time_step_limit",
    },
}


def architecture_of(config: Values) -> str | None:
    """The supported architecture of a config.json; None for other or missing ones.

    It follows from `model_type`, as in transformers, unless `architectures` names an unknown class.
    """
    named = config.get("architectures") or []
    names = [str(name) for name in named] if isinstance(named, list) else [str(named)]
    known = next((name for name in names if name in MODEL_TYPES), None)
    if known is None and not all(name.endswith("Model") for name in names):  # a bare model has no head, and runs
        return None
    model_type = config.get("model_type")
    if known is not None and MODEL_TYPES[known].removesuffix("_text") == str(model_type).removesuffix("_text"):
        return known
    return next((name for name, own in MODEL_TYPES.items() if own == model_type), known)


def model_type_of(config: Values) -> str | None:
    """The class of the language model of a config.json; None where it is not one of CLASSES."""
    architecture, text = architecture_of(config), config.get("text_config")
    if architecture is None:
        return None
    own = text.get("model_type") if isinstance(text, dict) else None
    whole = MODEL_TYPES[architecture]
    return own if isinstance(own, str) and own in CLASSES else TEXT_TYPES.get(whole, whole)


def class_values(config: Values) -> dict[str, Any] | None:
    """The keys of a config.json that count, in their class's spelling, with the class's defaults for missing ones.

    None where the class is not one of CLASSES. `rope_theta` is left to `theta_of_class`, since the file's own value
    goes before that of a dictionary for ropes.
    """
    model_type = model_type_of(config)
    if model_type is None:
        return None
    row, text = CLASSES[model_type], _language_model(config)
    said = {key: text[key] for key in row if key in text and not (text[key] is None and key in _NULL_IS_NOTHING)}
    said |= {key: text[alias] for key, alias in aliased_keys(config).items()}
    if said.get("rope_scaling"):
        said.setdefault("rope_parameters", None)
    values = {key: value for key, value in row.items() if key != "rope_theta"} | said
    if values["num_hidden_layers"] is None:
        blocks = next((values[key] for key in LAYER_LISTS if isinstance(values.get(key), (list, str))), ())
        values["num_hidden_layers"] = len(blocks) or None
    return values


def aliased_keys(config: Values) -> dict[str, str]:
    """Keys of its class that a config.json spells differently, and their spelling."""
    text = _language_model(config)
    return {key: alias for alias, key in ALIASES.get(model_type_of(config) or "", {}).items() if alias in text}


def _language_model(config: Values) -> Values:
    text = config.get("text_config")
    return text if isinstance(text, dict) and text else config


def theta_of_class(config: Values) -> dict[str, float]:
    """The rope base of a class by localrun's name; empty where it has no rope, or no default."""
    theta = CLASSES[model_type].get("rope_theta") if (model_type := model_type_of(config)) else None
    return {} if theta is None else {"rope_theta": theta}


def hf_ties(config: Values) -> bool:
    """Whether the output is the embedding, by a config.json or its class. Raises nothing."""
    architecture = architecture_of(config)
    whole, text = MODEL_TYPES.get(architecture or "", ""), config.get("text_config")
    keys = ["tie_word_embeddings"]
    if whole.startswith("lfm2") and "tie_embedding" in config:
        keys = ["tie_embedding"]
    parts = [config, text] if whole in ("qwen2_vl", "qwen2_5_vl") and isinstance(text, dict) else [config]
    said = [part[key] for part in parts for key in keys if isinstance(part.get(key), bool)]
    return any(said) if said else whole in TIED


def hf_biases(config: Values) -> Sequence[str]:
    """The matrices, of BIASED, that may have biases in a checkpoint."""
    model_type, values = model_type_of(config), class_values(config)
    if values is None:
        return BIASED
    qkv = BIASED[:3] if values.get("qkv_bias") else _ALWAYS_BIASED.get(model_type or "", ())
    attention = BIASED[:4] if values.get("attention_bias") else qkv
    return (*attention, *(BIASED[4:] if values.get("mlp_bias") else ()))
