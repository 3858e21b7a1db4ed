"""Declarative schema of hyperparameters: one row per field, checked before anything is allocated."""

from collections.abc import Iterator, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean

Number = int | float
REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Field:
    """A number in a model file: its names there, its type, and the closed range it must lie in."""

    name: str
    gguf: str  # after "<arch>."; where there are several spellings, with blanks between
    hf: str  # likewise
    kind: type[int] | type[float] | type[bool]
    low: Number
    high: Number
    default: object = REQUIRED  # None: the field may be absent and is then None


FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("n_layers", "block_count", "num_hidden_layers", int, 1, 512),
        Field("hidden_size", "embedding_length", "hidden_size", int, 8, 1 << 16),
        Field("ffn_size", "feed_forward_length", "intermediate_size block_ff_dim", int, 0, 1 << 20),
        Field("ffn_multiple", "", "block_multiple_of", int, 1, 1 << 16, 256),
        Field("ffn_factor", "", "block_ffn_dim_multiplier", float, 1e-3, 1e3, 1.0),
        Field("n_heads", "attention.head_count", "num_attention_heads", int, 1, 1024),
        Field("n_kv_heads", "attention.head_count_kv", "num_key_value_heads", int, 0, 1024, None),
        Field("head_dim", "attention.key_length", "head_dim", int, 2, 1024, None),
        Field("value_dim", "attention.value_length", "v_head_dim", int, 2, 1024, None),
        Field("vocab_size", "vocab_size", "vocab_size", int, 1, 1 << 24, None),
        Field("max_context", "context_length", "max_position_embeddings", int, 1, 1 << 27),
        Field(
            "rms_eps",
            "attention.layer_norm_rms_epsilon attention.layer_norm_epsilon",
            "rms_norm_eps norm_eps layer_norm_epsilon",
            float,
            1e-12,
            0.1,
        ),
        Field("post_eps", "", "post_norm_eps", float, 1e-12, 0.1, None),
        Field("rope_theta", "rope.freq_base rope.global.freq_base", "rope_theta", float, 1.01, 1e12, 10000.0),
        Field(
            "rope_theta_window",
            "rope.freq_base_swa rope.local.freq_base",
            "rope_local_base_freq",
            float,
            1.01,
            1e12,
            None,
        ),
        Field("rope_dims", "rope.dimension_count", "qk_rope_head_dim", int, 2, 1024, None),
        Field("nope_dims", "", "qk_nope_head_dim", int, 1, 1024, None),
        Field("kv_rank", "attention.kv_lora_rank", "kv_lora_rank", int, 1, 1024, None),
        Field("q_rank", "attention.q_lora_rank", "q_lora_rank", int, 0, 1 << 16, None),
        Field("unabsorbed_key_dim", "attention.key_length_mla", "", int, 2, 1024, None),
        Field("unabsorbed_value_dim", "attention.value_length_mla", "v_head_dim", int, 2, 1024, None),
        Field("partial_rotary_factor", "", "partial_rotary_factor", float, 0.01, 1.0, None),
        Field("n_shared_kv", "attention.shared_kv_layers", "num_kv_shared_layers", int, 0, 512, 0),
        Field("window_head_dim", "attention.key_length_swa", "", int, 2, 1024, None),
        Field("window_rope_dims", "rope.dimension_count_swa", "", int, 2, 1024, None),
        Field("full_head_dim", "", "global_head_dim", int, 2, 1024, None),
        Field("n_full_kv_heads", "", "num_global_key_value_heads", int, 1, 1024, None),
        Field(
            "per_layer_size", "embedding_length_per_layer_input", "hidden_size_per_layer_input", int, 0, 1 << 12, None
        ),
        Field("window", "attention.sliding_window", "sliding_window", int, 0, 1 << 27, None),
        Field("attn_softcap", "attn_logit_softcapping", "attn_logit_softcapping", float, 0.0, 1e6, None),
        Field("logit_softcap", "final_logit_softcapping", "final_logit_softcapping", float, 0.0, 1e6, None),
        Field("attn_scale", "attention.scale", "attention_multiplier", float, 1e-6, 1e3, None),
        Field(
            "query_beta",
            "attention.temperature_scale rope.scaling_beta",
            "llama_4_scaling_beta",
            float,
            0.0,
            100.0,
            None,
        ),
        Field(
            "original_context",
            "rope.scaling.original_context_length",
            "original_max_position_embeddings",
            int,
            1,
            1 << 27,
            None,
        ),
        Field("query_pre_attn_scalar", "", "query_pre_attn_scalar", float, 1e-3, 1e6, None),
        Field("embed_scale", "embedding_scale", "embedding_multiplier", float, 1e-6, 1e6, 1.0),
        Field("residual_scale", "residual_scale", "residual_multiplier", float, 1e-6, 1e6, 1.0),
        Field("logit_scale", "logit_scale", "logits_scaling output_multiplier", float, 1e-6, 1e6, 1.0),
        Field("q_factor", "", "qk_scale_factor", float, 1e-6, 1e3, None),
        Field("max_window_layers", "", "max_window_layers", int, 0, 512, 28),
        Field("no_rope_step", "", "no_rope_layer_interval", int, 1, 512, None),
        Field("n_draft_layers", "nextn_predict_layers", "", int, 0, 64, 0),
        Field("full_every", "full_attention_interval", "full_attention_interval", int, 1, 512, 4),
        Field("short_conv_taps", "shortconv.l_cache", "conv_L_cache", int, 2, 16, None),
        Field("conv_taps", "ssm.conv_kernel", "linear_conv_kernel_dim mamba_d_conv conv_kernel", int, 2, 16, None),
        Field("n_key_heads", "ssm.group_count", "linear_num_key_heads mamba_n_groups n_groups", int, 1, 1024, None),
        Field(
            "n_value_heads",
            "ssm.time_step_rank",
            "linear_num_value_heads mamba_n_heads mamba_num_heads",
            int,
            1,
            1024,
            None,
        ),
        Field(
            "state_key_dim", "ssm.state_size", "linear_key_head_dim mamba_d_state ssm_state_size", int, 1, 1024, None
        ),
        Field("state_value_dim", "", "linear_value_head_dim mamba_head_dim", int, 1, 1024, None),
        Field("state_expand", "", "mamba_expand", int, 1, 64, 2),
        Field("state_width", "ssm.inner_size", "", int, 1, 1 << 20, None),
        Field("n_experts", "expert_count", "num_local_experts num_experts n_routed_experts", int, 0, 512, None),
        Field("n_experts_used", "expert_used_count", "num_experts_per_tok top_k_experts", int, 0, 512, None),
        Field("expert_ffn_size", "expert_feed_forward_length", "moe_intermediate_size", int, 8, 1 << 20, None),
        Field("expert_every", "", "decoder_sparse_step", int, 1, 512, 1),
        Field("n_dense_layers", "leading_dense_block_count", "first_k_dense_replace num_dense_layers", int, 0, 512, 0),
        Field("expert_gating", "expert_gating_func", "", int, 0, 1 << 8, None),
        Field("normalize_experts", "expert_weights_norm norm_top_k_prob", "norm_topk_prob", bool, 0, 1, None),
        Field("expert_scale", "expert_weights_scale", "routed_scaling_factor", float, 0.0, 1e6, None),
        Field("n_expert_groups", "expert_group_count", "n_group", int, 0, 512, None),
        Field("n_expert_groups_used", "expert_group_used_count", "topk_group", int, 0, 512, None),
        Field("n_shared_experts", "expert_shared_count", "n_shared_experts", int, 0, 512, 0),
        Field(
            "shared_ffn_size",
            "expert_shared_feed_forward_length",
            "shared_expert_intermediate_size shared_intermediate_size moe_shared_expert_intermediate_size",
            int,
            0,
            1 << 20,
            None,
        ),
    )
}


PER_LAYER = ("n_heads", "n_kv_heads", "ffn_size")  # may be a list with a number for each layer


class Fields(Mapping[str, Any]):
    """The hyperparameters of one file by localrun's names; a bad value is a ModelFileError with the file's key.

    `defaults` (by localrun's names) replace missing keys; a key set to null is not missing. `spellings` has the file's
    own word for keys that were renamed on reading.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        format: str,
        prefix: str,
        path: str,
        defaults: Mapping[str, Number | None] = MappingProxyType({}),
        spellings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.values_by_key = values
        self.format = format
        self.prefix = prefix
        self.path = path
        self.defaults = defaults
        self.spellings = spellings

    def within(self, values: Mapping[str, Any]) -> "Fields":
        """The same schema over a nested dictionary of the same file."""
        return Fields(values, self.format, self.prefix, self.path)

    def spelled_as(self, spellings: Mapping[str, str]) -> "Fields":
        """The same fields, some of which the file has other words for."""
        return Fields(self.values_by_key, self.format, self.prefix, self.path, self.defaults, spellings)

    def of_layer(self, index: int) -> "Fields":
        """The fields of one layer, where the file has lists."""
        lists = {self.key(FIELDS[name]): self.values_by_key[self.key(FIELDS[name])] for name in self.listed()}
        for key, values in lists.items():
            if len(values) != self["n_layers"]:
                raise self.error(f"{self.spelled(key)} has {len(values)} numbers for {self['n_layers']} layers")
        own = {key: values[index] for key, values in lists.items()}
        values_there = {**self.values_by_key, **own}
        return Fields(values_there, self.format, self.prefix, self.path, self.defaults, self.spellings)

    def listed(self) -> list[str]:
        """Fields that differ between layers."""
        values = {name: self.values_by_key.get(self.key(FIELDS[name])) for name in PER_LAYER}
        return [name for name, value in values.items() if isinstance(value, list) and any(v != value[0] for v in value)]

    def check(self) -> None:
        """Check every field, used or not; those that differ between layers are checked with their layer."""
        listed = self.listed()
        for name in self:
            if name not in listed:
                _ = self[name]

    def value(self, key: str) -> Any:
        """The value of one of the file's own keys; None where there is none.

        ModelFileError for NaN and infinity anywhere in it, which JSON as Python writes it may have.
        """
        value = self.values_by_key.get(key)
        if (found := _not_finite("", value)) is not None:
            raise self.error(f"{self.spelled(key)}{clean(found)}, not a finite number")
        return value

    def spelled(self, key: str) -> str:
        """A key in the file's spelling, for a message."""
        return clean(self.spellings.get(key, key))

    def key(self, field: Field) -> str:
        """The name of a field in this file; empty when the format has none."""
        return self.first_key(f"{self.prefix}.", field.gguf) if self.format == "gguf" else self.first_key("", field.hf)

    def first(self, prefix: str, spellings: str) -> tuple[str, Any]:
        """The first of several keys that has a value, else the usual one; and its value."""
        key = self.first_key(prefix, spellings)
        return key, self.value(key)

    def first_key(self, prefix: str, spellings: str) -> str:
        keys = [prefix + spelling for spelling in spellings.split()]
        return next((key for key in keys if self.values_by_key.get(key) is not None), (*keys, "")[0])

    def __getitem__(self, name: str) -> Any:
        field = FIELDS[name]
        key = self.key(field)
        value = self.value(key) if key else None
        if name in self.defaults and not (key and key in self.values_by_key):
            return self.defaults[name]
        if value is None:
            if field.default is REQUIRED:
                raise self.error(f"the hyperparameter {self.spelled(key)} is missing")
            return field.default
        return self.checked(field, key, value)

    def required(self, name: str) -> Any:
        """A field that this architecture needs."""
        value = self[name]
        if value is None:
            raise self.error(f"the hyperparameter {self.spelled(self.key(FIELDS[name]))} is missing")
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)

    def checked(self, field: Field, key: str, value: Any) -> Number:
        said = self.spelled(key)
        if isinstance(value, list):  # one number for all layers, unless it is asked for as one of them has it
            if not value or any(item != value[0] for item in value):
                raise ModelFileError("UNSUPPORTED", f"{said} differs between layers", path=self.path)
            value = value[0]
        if field.kind is bool and isinstance(value, bool):
            return value
        if field.kind is bool:
            raise self.error(f"{said} should be true or false, not {type(value).__name__}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{said} should be a number, not {type(value).__name__}")
        if not field.low <= value <= field.high:  # false for NaN too
            raise self.error(f"{said} is {clean(repr(value)[:24])}, outside {field.low:,} … {field.high:,}")
        if field.kind is int and value != int(value):
            raise self.error(f"{said} is {value}, not a whole number")
        return field.kind(value)

    def error(self, message: str) -> ModelFileError:
        return ModelFileError("BAD_HPARAM" if self.format == "gguf" else "BAD_CONFIG", message, path=self.path)


def _not_finite(where: str, value: object) -> str | None:
    """The first NaN or infinity in a value, as ".part[0] is nan"; None where there is none."""
    if isinstance(value, float):
        return None if isfinite(value) else f"{where} is {value}"
    if isinstance(value, dict):
        parts = ((f"{where}.{key}", item) for key, item in value.items())
    elif isinstance(value, list):
        parts = ((f"{where}[{index}]", item) for index, item in enumerate(value))
    else:
        return None
    return next((found for part in parts if (found := _not_finite(*part)) is not None), None)
