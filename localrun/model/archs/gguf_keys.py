"""GGUF keys that change what a model computes: each is honoured, or the file is refused. Torch-free."""

from collections.abc import Iterable
from math import isclose
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.model.config import ModelConfig
from localrun.model.fields import Fields

# What no architecture here has. Such a key has to say that there is none of it: zero, false, or a list of nothing else.
PARTS_OF_NONE = {
    "activation_sparsity_scale": "sparse activations",
    "altup.num_inputs": "several residual streams (AltUp)",
    "attention.clamp_kqv": "clamped queries, keys and values",
    "attention.indexer.head_count": "an indexer of keys",
    "attention.max_alibi_bias": "ALiBi",
    "attention.output_scale": "scaled results of attention",
    "attention.relative_buckets_count": "relative positions",
    "expert_group_scale": "scaled groups of experts",
    "interleave_moe_layer_step": "experts in every n-th layer",
    "kda.head_dim": "Kimi's delta attention",
    "moe_every_n_layers": "experts in every n-th layer",
    "rescale_every_n_layers": "rescaled layers",
    "rope.scaling.alpha": "NTK scaling by alpha",
    "router_logit_softcapping": "capped scores of experts",
    "ssm.dt_b_c_rms": "norms within Mamba",
    "swiglu_clamp_exp": "clamped experts",
    "swiglu_clamp_shexp": "clamped experts",
    "swin_norm": "norms in another order",
    "token_shift_count": "shifted tokens",
    "use_parallel_residual": "parallel residuals",
}


PARTS_OF_LATENTS = {
    "attention.key_length_mla": "latent attention",
    "attention.kv_lora_rank": "latent attention",
    "attention.q_lora_rank": "queries of low rank",
    "attention.value_length_mla": "latent attention",
}


def check_keys(fields: Fields, config: ModelConfig) -> None:
    """Raise ModelFileError: UNSUPPORTED for an unsupported key, BAD_HPARAM where a key contradicts the tensors."""
    absent = PARTS_OF_NONE | ({} if config.latents else PARTS_OF_LATENTS)
    for key, what in absent.items():
        value = fields.value(f"{fields.prefix}.{key}")
        if any(value) if isinstance(value, list) else value:
            raise unsupported(fields, key, value, f"{what} cannot be run")
    if fields.value(f"{fields.prefix}.attention.causal") is False:
        raise unsupported(fields, "attention.causal", False, "tokens that see those after them cannot be run")
    for key, honoured in numbers_of(config).items():
        value = fields.value(f"{fields.prefix}.{key}")
        said = [one for one in (value if isinstance(value, list) else [value]) if one]  # nothing asks for nothing
        if not all(isinstance(one, (int, float)) and is_one_of(one, honoured) for one in said):
            raise unsupported(fields, key, value, f"a {config.arch} model is run with {next(iter(honoured)):g}")
    if fields.value(f"{fields.prefix}.vocab_size") is not None and fields["vocab_size"] != config.vocab_size:
        raise fields.error(f"vocab_size is {fields['vocab_size']:,}, but the embedding has {config.vocab_size:,} rows")


def numbers_of(config: ModelConfig) -> dict[str, set[float]]:
    """Values that a model runs with, by the key that may give them; none for parts that it does not have."""
    windowed = [spec for spec in config.layers if spec.kind == "window"]
    turned = [config.ropes[spec.rope] for spec in config.layers if spec.has_attention and spec.rope is not None]
    turned_there = [config.ropes[spec.rope] for spec in windowed if spec.rope is not None]
    numbers: dict[str, Iterable[float]] = {
        "embedding_scale": [config.embed_scale],
        "residual_scale": [spec.residual_scale for spec in config.layers],
        "logit_scale": [1.0 / config.logit_scale, config.logit_scale],
        "attention.shared_kv_layers": [sum(spec.shares_cache is not None for spec in config.layers)],
        "attention.temperature_length": [config.query_scale.floor] if config.query_scale else [],
        "attention.scale": [spec.attn_scale for spec in config.layers],
        "rope.dimension_count": [rope.dims for rope in turned],
        "rope.freq_base_swa": [rope.theta for rope in turned_there],
        "rope.dimension_count_swa": [rope.dims for rope in turned_there],
        "attention.key_length_swa": [spec.head_dim for spec in windowed],
        "attention.value_length_swa": [spec.head_dim for spec in windowed],
        # of what is cached, or in early files of heads
        "attention.key_length": [n for one in config.latents for n in (one.rank + one.rope_dims, one.key_dim)],
        "attention.value_length": [n for one in config.latents for n in (one.rank, one.value_dim)],
    }
    return {key: found for key, values in numbers.items() if (found := set(values))}


def is_one_of(number: float, others: set[float]) -> bool:
    return any(isclose(number, other, rel_tol=1e-6) for other in others)


def unsupported(fields: Fields, key: str, value: Any, why: str) -> ModelFileError:
    shown = clean(f"{fields.prefix}.{key} = {value!r}"[:80])
    return ModelFileError("UNSUPPORTED", f"{shown}: {why}", path=fields.path)
