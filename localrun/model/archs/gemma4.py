"""Gemma 4 (text): larger heads and partial rope in full layers; values may share the matrix of keys.

The last layers of the small models read the keys and values of earlier ones, and all of their layers use per-layer
embeddings. In the mixture every layer has a dense network beside its experts.
"""

from dataclasses import replace
from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.gemma3 import Gemma3
from localrun.model.archs.names import GGUF_NAMES, HF_POST_NORM_NAMES
from localrun.model.archs.reading import LAYER_TYPES, hf_rope_parameters, hf_theta
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_gguf, rope_from_hf, scaled_rope

FULL_THETA, WINDOW_THETA = 1_000_000.0, 10_000.0
_EXPERTS_APART = ("experts", "moe.experts")  # in packed checkpoints, by the program that packed them
FULL_ROPE = {"rope_type": "proportional", "partial_rotary_factor": 0.25}  # where a checkpoint does not say


class Gemma4(Gemma3):
    name = "gemma4"
    gguf = ("gemma4",)
    hf: ClassVar[tuple[str, ...]] = (
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForCausalLM",
        "Gemma4UnifiedForConditionalGeneration",
    )
    hf_names: ClassVar = {
        **HF_POST_NORM_NAMES,
        "router": "layers.{}.router.proj.weight",
        "router_norm": "layers.{}.router.scale",
        "expert_scale": "layers.{}.router.per_expert_scale",
        "experts_gate_up": "layers.{}.experts.gate_up_proj",
        **{
            f"expert_{name}": " ".join(f"layers.{{}}.{part}.{{}}.{name}_proj.weight" for part in _EXPERTS_APART)
            for name in ("gate", "up", "down")
        },
        "experts_down": "layers.{}.experts.down_proj layers.{}.experts.switch_glu.down_proj.weight",
        "experts_gate": "layers.{}.experts.switch_glu.gate_proj.weight",
        "experts_up": "layers.{}.experts.switch_glu.up_proj.weight",
        "experts_norm": "layers.{}.pre_feedforward_layernorm_2.weight",
        "experts_post_norm": "layers.{}.post_feedforward_layernorm_2.weight",
        "shared_post_norm": "layers.{}.post_feedforward_layernorm_1.weight",
        "shared_gate": "layers.{}.mlp.gate_proj.weight",
        "shared_up": "layers.{}.mlp.up_proj.weight",
        "shared_down": "layers.{}.mlp.down_proj.weight",
    }
    gguf_names: ClassVar = {
        "router_norm": "blk.{}.ffn_gate_inp.scale",
        "expert_scale": "blk.{}.ffn_down_exps.scale blk.{}.ffn_gate_inp.per_expert_scale",
        "experts_norm": "blk.{}.pre_ffw_norm_2.weight",
        "experts_post_norm": "blk.{}.post_ffw_norm_2.weight",
        "shared_post_norm": "blk.{}.post_ffw_norm_1.weight",
        "shared_gate": "blk.{}.ffn_gate.weight",
        "shared_up": "blk.{}.ffn_up.weight",
        "shared_down": "blk.{}.ffn_down.weight",
    }
    experts = ExpertRules(beside_dense=True)
    bidirectional: ClassVar[tuple[object, ...]] = ("all",)
    hf_norm_offset = 0.0
    defaults: ClassVar = {"rope_theta": FULL_THETA, "rope_theta_window": WINDOW_THETA, "rms_eps": 1e-6}

    def config(self, source: TensorSource) -> ModelConfig:
        config = super().config(source)
        if source.format != "gguf":
            return config
        layers = (  # a GGUF says by the tensors it has whether keys and values are made by one matrix
            replace(spec, k_is_v=GGUF_NAMES["v"].format(index) not in source.tensors)
            for index, spec in enumerate(config.layers)
        )
        return replace(config, layers=tuple(layers))

    def layers_with_experts(self, fields: Fields) -> list[bool]:
        """Whether each layer has experts; a checkpoint may give a number of experts and have none."""
        with_experts = fields.format == "gguf" or fields.value("enable_moe_block") is True
        return [with_experts] * fields["n_layers"]

    def layers(self, fields: Fields) -> tuple[LayerSpec, ...]:
        layers = super().layers(fields)
        n_own = len(layers) - fields["n_shared_kv"]
        if n_own < 1:
            raise fields.error("no layer has keys and values of its own")
        wider = 2 if fields.value("use_double_wide_mlp") is True else 1
        return (
            *layers[:n_own],
            *(
                replace(spec, shares_cache=self.source_of(fields, spec, layers[:n_own]), ffn_size=wider * spec.ffn_size)
                for spec in layers[n_own:]
            ),
        )

    def source_of(self, fields: Fields, spec: LayerSpec, own: tuple[LayerSpec, ...]) -> int:
        """The last layer of its kind that has keys and values of its own."""
        index = max((i for i, other in enumerate(own) if other.rope == spec.rope), default=None)
        if index is None:
            raise fields.error("a layer reads the keys and values of others, but there are none of its kind")
        return index

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        spec = replace(spec, v_norm=True, image_spans=windowed and self.has_spans(fields))
        if fields.format == "gguf":
            return replace(spec, head_dim=fields["window_head_dim"] or base.head_dim) if windowed else spec
        one_matrix = not windowed and fields.value("attention_k_eq_v") is True
        head_dim, n_kv_heads = self.heads(fields, index, windowed, one_matrix)
        if not n_kv_heads or base.n_heads % n_kv_heads:
            raise fields.error(f"{base.n_heads} query heads cannot share {n_kv_heads} key-value heads")
        return replace(spec, head_dim=head_dim, n_kv_heads=n_kv_heads, k_is_v=one_matrix)

    def has_spans(self, fields: Fields) -> bool:
        """Whether rows of an image see each other both ways in windowed layers. No GGUF says so: the small models,
        which have per-layer embeddings, do not."""
        if fields.format == "gguf":
            return not fields["per_layer_size"]
        return bool(fields.value("use_bidirectional_attention") == "vision")

    def heads(self, fields: Fields, index: int, windowed: bool, one_matrix: bool) -> tuple[int, int]:
        """Size and number of a layer's key-value heads; a checkpoint gives them by layer or for all full ones."""
        by_layer = fields.value("per_layer_config")
        if by_layer is not None:
            own = by_layer.get(str(index), {}) if isinstance(by_layer, dict) else None
            if not isinstance(own, dict):
                raise fields.error("per_layer_config should be a dictionary of dictionaries")
            one = fields.within({**fields.values_by_key, **own})
            return one.required("head_dim"), one.required("n_kv_heads")
        if windowed:
            return fields.required("head_dim"), fields.required("n_kv_heads")
        n_kv_heads = (one_matrix and fields["n_full_kv_heads"]) or fields.required("n_kv_heads")
        return fields["full_head_dim"] or 512, n_kv_heads

    def windowed_layers(self, fields: Fields) -> list[bool]:
        """Whether each layer is windowed; the last one never is."""
        return [*super().windowed_layers(fields)[:-1], False]

    def rope_dims(self, fields: Fields, head_dim: int) -> int:
        return head_dim

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        sizes = {spec.rope: spec.head_dim for spec in self.layers(fields)}
        full, windowed = sizes.get(0, dims), sizes.get(1, dims)
        if source.format == "gguf":
            if "rope_freqs.weight" not in source.tensors:
                raise ModelFileError("MISSING_TENSOR", "tensor 'rope_freqs.weight' is missing", path=fields.path)
            every = rope_from_gguf(source, fields, fields["rope_theta"], full)
            return every, RopeSpec(fields["rope_theta_window"], fields["window_rope_dims"] or windowed)
        if fields.value("rope_scaling"):
            raise ModelFileError("UNSUPPORTED", "rope_scaling has no meaning for Gemma 4", path=fields.path)
        if fields.value("rope_parameters") is None:
            return scaled_rope(fields, FULL_ROPE, FULL_THETA, full), RopeSpec(WINDOW_THETA, windowed)
        kinds = [hf_rope_parameters(fields, kind) for kind in LAYER_TYPES]
        if any("rope_theta" not in scaling for scaling in kinds):
            raise fields.error("rope_parameters should have a rope_theta for each layer type")
        return tuple(
            rope_from_hf(fields, scaling, hf_theta(fields, scaling), size)
            for scaling, size in zip(kinds, (full, windowed), strict=True)
        )

    def attn_scale(self, fields: Fields, head_dim: int) -> float:
        return 1.0
