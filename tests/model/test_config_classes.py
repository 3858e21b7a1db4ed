"""Every key of a config.json means what it means to its class in transformers: read, left out, or added by hand.

The oracle is transformers' own reading: the whole of its config, in which nothing is left to a class any more. Ours of
that is checked by logits elsewhere.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest
from localrun_testing.tiny_models import TINY_MODELS, hub_spelling, transformers

from localrun.base.errors import ModelFileError
from localrun.formats.json_files import parse_json
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorInfo
from localrun.model.archs import ARCHS, arch_of
from localrun.model.archs.hf_classes import ALIASES, MODEL_TYPES, TEXT_TYPES, TIED, hf_ties, model_type_of
from localrun.model.archs.hf_values import CLASSES
from localrun.model.config import ModelConfig

Config = dict[str, Any]
LEGACY = {  # no fields of a class, but read by it
    *("rope_theta", "rope_scaling", "partial_rotary_factor", "head_dim", "num_hidden_layers", "intermediate_size"),
    *("sliding_window_pattern", "rope_local_base_freq", "full_attention_interval", "hybrid_override_pattern"),
    *("per_layer_config", "global_head_dim", "num_global_key_value_heads"),
}
NOT_READ = {  # fields that change no number of an answer
    **dict.fromkeys(("use_cache", "num_logits_to_keep"), "what is kept or given back"),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), "the tokenizer's and the sampler's"),
    "tie_word_embeddings": "read beside the tensors: test_tied_output",
    "initializer_range": "training",
    "rescale_prenorm_residual": "training",
    **dict.fromkeys(("attention_dropout", "resid_pdrop", "embd_pdrop", "hidden_dropout"), "training"),
    **dict.fromkeys(("output_router_logits", "router_aux_loss_coef", "router_jitter_noise"), "training"),
    **dict.fromkeys(("time_step_min", "time_step_max", "time_step_floor"), "how weights begin"),
    "pretraining_tp": "how matrices are cut for several devices",
    **dict.fromkeys(("mamba_chunk_size", "chunk_size", "use_mamba_kernels"), "how a scan is cut"),
    "mamba_d_head": "follows from mamba_expand, which has to agree",
    "expand": "not used by its class, which has mamba_head_dim",
    **dict.fromkeys(("mamba_ssm_cache_dtype", "residual_in_fp32"), "precision of what is f32 here"),
    "moe_shared_expert_overlap": "in which order it is computed",
    **dict.fromkeys(("num_nextn_predict_layers", "num_mtp_layers", "mtp_layers_block_type"), "layers that only draft"),
    "vocab_size_per_layer_input": "rows of a table, which its tensor has",
}
NOT_USED_BY = {"nemotron_h": {"sliding_window", "attention_bias"}}  # its class has it, and that is all


class ConfigSource:
    """A source of no tensors."""

    path, format, warnings = Path("config.json"), "safetensors", ()
    tensors: ClassVar[dict[str, TensorInfo]] = {}

    def __init__(self, config: Config) -> None:
        self.metadata = Metadata(parse_json(json.dumps(config).encode(), self.path, "BAD_CONFIG"), self.path)


def ours(config: Config) -> tuple[ModelConfig, bool] | str:
    """What is read, and whether the output is the embedding; or why not."""
    source: Any = ConfigSource(config)
    try:
        return arch_of(source).config(source), hf_ties(source.metadata)
    except ModelFileError as error:
        return error.message


def whole(config: Config) -> Config | None:
    """The config as transformers reads it, with every key; None where it refuses it."""
    try:
        read = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    except Exception:  # of many kinds
        return None
    return {**json.loads(read.to_json_string(use_diff=False)), "architectures": config.get("architectures")}


def written(name: str) -> Iterator[Config]:
    """The config.json of a tiny model, as transformers writes it and as it was written before version 5."""
    recipe = TINY_MODELS[name]
    settings = {**copy.deepcopy(dict(recipe.config)), "dtype": "float32"}
    if recipe.vision is not None:
        settings = {"text_config": settings, "vision_config": dict(recipe.vision)}
        settings["tie_word_embeddings"] = recipe.config["tie_word_embeddings"]
    config = json.loads(transformers.AutoConfig.for_model(recipe.model_type, **settings).to_json_string())
    config["architectures"] = [next(name for name, own in MODEL_TYPES.items() if own == recipe.model_type)]
    yield config
    if name != "olmo3":  # which loses a rope_theta of that spelling for its windowed layers
        yield hub_spelling(config)


def text_of(config: Config) -> Config:
    text: Config = config.get("text_config", config)
    return text


def test_every_architecture_has_its_class() -> None:
    names = {name for arch in ARCHS for name in arch.hf}
    assert names == set(MODEL_TYPES)
    assert {TEXT_TYPES.get(own, own) for own in MODEL_TYPES.values()} | {"ministral3"} == set(CLASSES)
    ties = {own: fields(transformers.CONFIG_MAPPING[own]) for own in MODEL_TYPES.values()}
    names = {own for own, all_ in ties.items() for one in all_ if one.name == "tie_word_embeddings" and one.default}
    assert names == set(TIED)


@pytest.mark.parametrize("model_type", CLASSES)
def test_values_are_those_of_the_class(model_type: str) -> None:
    config_class, row = transformers.CONFIG_MAPPING[model_type], CLASSES[model_type]
    own = {field.name: field.default for field in fields(config_class) if field.default is not MISSING}
    worked_out = {"time_step_limit", "rope_parameters"}  # when a config is made: below
    same = (row.keys() & own.keys()) - worked_out
    assert {key: row[key] for key in same} == {key: own[key] for key in same}
    assert row.keys() - own.keys() <= LEGACY
    theta = config_class.default_theta
    assert row.get("rope_theta") in (theta["global"] if isinstance(theta, dict) else theta, None)


@pytest.mark.parametrize("model_type", CLASSES)
def test_every_key_of_the_class_is_read_or_changes_nothing(model_type: str) -> None:
    whole_config = {field.name for field in fields(transformers.PreTrainedConfig)}
    known = CLASSES[model_type].keys() | ALIASES.get(model_type, {}).keys() | NOT_READ.keys()
    own = {field.name for field in fields(transformers.CONFIG_MAPPING[model_type])}
    assert own - whole_config - known == NOT_USED_BY.get(model_type, set())


ONE_OF_EACH_CLASS = list({model.model_type: name for name, model in TINY_MODELS.items()}.values())


@pytest.mark.parametrize("name", TINY_MODELS)
def test_a_key_that_is_left_out(name: str) -> None:
    """Refused, or as its class has it."""
    for config in written(name):
        for key in (None, "architectures", *text_of(config)):
            changed = copy.deepcopy(config)
            (changed if key == "architectures" else text_of(changed)).pop(key or "", None)
            assert_same(changed, key, may_refuse=key is not None and key != "architectures")


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
ADDED: dict[str, Any] = {  # by hand, or left over from another architecture
    "sliding_window": 16,
    "use_sliding_window": True,
    "max_window_layers": 1,
    "sliding_window_pattern": 2,
    "embedding_multiplier": 3.0,
    "logits_scaling": 3.0,
    "residual_multiplier": 0.5,
    "attention_multiplier": 0.5,
    "query_pre_attn_scalar": 7,
    "final_logit_softcapping": 2.0,
    "attn_logit_softcapping": 2.0,
    "rope_theta": 777.0,
    "rope_local_base_freq": 77.0,
    "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 32,
    "full_attention_interval": 2,
    "num_kv_shared_layers": 1,
    "no_rope_layer_interval": 2,
    "no_rope_layers": [1, 0, 1],
    "decoder_sparse_step": 2,
    "mlp_only_layers": [0],
    "first_k_dense_replace": 1,
    "num_dense_layers": 1,
    "n_shared_experts": 3,
    "routed_scaling_factor": 2.0,
    "norm_topk_prob": True,
    "n_group": 2,
    "topk_group": 1,
    "v_head_dim": 64,
    "global_head_dim": 64,
    "block_multiple_of": 32,
    "use_double_wide_mlp": True,
    "attention_k_eq_v": True,
    "position_embedding_type": "rope",
    "swiglu_limit": 6.0,
    "conv_bias": True,
    "use_bias": True,
    "mamba_proj_bias": True,
    "use_conv_bias": False,
    "moe_latent_size": 32,
    "mamba_expand": 3,
    "use_bidirectional_attention": True,
    "use_expert_bias": False,
    "enable_moe_block": True,
    "mamba_hidden_act": "gelu",
    "hidden_act": "gelu_new",
    "hidden_activation": "silu",
    "mlp_hidden_act": "silu",
    "kv_lora_rank": 48,
    "q_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 8,
    "rope_interleave": False,
    "mlp_layer_types": ["sparse", "sparse", "dense"],
    "topk_method": "group_limited_greedy",
    "mlp_bias": True,
}


@pytest.mark.parametrize("name", ONE_OF_EACH_CLASS)
def test_a_key_that_is_added(name: str) -> None:
    """Where the class has it, what it does is computed or refused; where it has not, nothing changes: all at once."""
    for config in written(name):
        model_type = model_type_of(config) or ""
        row = CLASSES[model_type]
        known = {*row, *LEGACY, *(field.name for field in fields(transformers.CONFIG_MAPPING[model_type]))}
        foreign = {key: value for key, value in ADDED.items() if key not in known}
        assert foreign
        for added in (foreign, *({key: ADDED[key]} for key in ADDED if key in known)):
            if "rope_theta" in added and "rope_parameters" not in text_of(config) and "rope_theta" not in row:
                continue
            changed = copy.deepcopy(config)
            text_of(changed).update(added)
            assert_same(changed, ", ".join(added), may_refuse=not row.keys().isdisjoint(added))


@pytest.mark.parametrize("name", TINY_MODELS)
@pytest.mark.parametrize(
    "scaling", [YARN, {"rope_type": "linear", "factor": 4.0}, {}, None], ids=["yarn", "linear", "empty", "null"]
)
def test_rope_scaling_beside_rope_parameters(name: str, scaling: Config | None) -> None:
    """With the base and the share of the dims that transformers would forget. Gemma 4 does not know it."""
    for config in written(name):
        text = text_of(config)
        ropes: Config = text.get("rope_parameters") or {}
        parameters = ropes.get("full_attention", ropes)
        kept = {key: parameters[key] for key in ("rope_theta", "partial_rotary_factor") if key in parameters}
        plain = ours(config)
        text["rope_scaling"] = {**kept, **scaling} if scaling else scaling
        if not name.startswith("gemma4"):
            assert_same(config, "rope_scaling")
        elif scaling:
            assert "rope_scaling has no meaning" in str(ours(config))
        else:
            assert ours(config) == plain


@pytest.mark.parametrize("name", ["llama", "gemma3", "olmo3", "qwen3"])
def test_the_older_spelling_of_its_type(name: str) -> None:
    """Also where one dictionary for each layer type stands beside it."""
    for config in written(name):
        newer, older = (
            ours({**config, "rope_scaling": {key: "linear", "factor": 3.0, "rope_theta": 1e4}})
            for key in ("rope_type", "type")
        )
        assert newer == older != ours(config)


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    "x",
    [],
    [None],
    [1, 1, 1],
    {},
    {"full_attention": "x", "sliding_attention": {}},
    10**30,
)


@pytest.mark.parametrize("name", ONE_OF_EACH_CLASS)
def test_a_key_of_another_kind_is_refused_or_harmless(name: str) -> None:
    config = next(written(name))
    for key in CLASSES[model_type_of(config) or ""]:
        for value in JUNK:
            changed = copy.deepcopy(config)
            text_of(changed)[key] = value
            ours(changed)  # and no other error than its own


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling", "partial_rotary_factor"])
@pytest.mark.parametrize("name", ["gpt-oss", "ministral-3", "llama-llama3-rope", "phi3", "qwen3-next"])
def test_null_is_as_if_it_were_left_out(name: str, key: str) -> None:
    for config in list(written(name)):
        without = copy.deepcopy(config)
        text_of(without).pop(key, None)
        text_of(config)[key] = None
        assert ours(config) == ours(without)


def test_a_base_that_only_rope_parameters_have_stays() -> None:
    config = next(written("qwen3"))
    config["rope_parameters"]["rope_theta"] = 777.0
    config["rope_scaling"] = YARN
    read = ours(config)
    assert not isinstance(read, str)
    assert read[0].ropes[0].theta == 777.0


@pytest.mark.parametrize("named", [None, [], ["LlamaModel"], ["LlamaForCausalLM"]])
def test_an_architecture_that_is_left_to_the_type(named: list[str] | None) -> None:
    config = next(written("llama"))
    assert ours({**config, "architectures": named}) == ours(config)
    assert ours({key: value for key, value in config.items() if key != "architectures"}) == ours(config)


def assert_same(config: Config, key: str | None, may_refuse: bool = False) -> None:
    read = ours(config)
    if may_refuse and isinstance(read, str):
        return
    everything = whole(config)
    if everything is None:
        return
    assert read == ours(everything), key
    assert not isinstance(read, str), (key, read)
