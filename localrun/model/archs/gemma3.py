"""Gemma 3 (text): five windowed layers to each full one, each kind with its own rope; norms on q and k heads."""

from dataclasses import replace

from localrun.formats.source import TensorSource
from localrun.model.archs.base import HF_POST_NORM_NAMES, hf_rope_parameters, hf_theta
from localrun.model.archs.gemma2 import Gemma2
from localrun.model.config import LayerSpec, RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_hf


class Gemma3(Gemma2):
    name = "gemma3"
    gguf = ("gemma3",)
    hf = ("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration")
    hf_names = HF_POST_NORM_NAMES
    qk_norm = "head"
    full_every = 6
    n_layers_27b = 62
    theta_full, theta_window = 1_000_000.0, 10_000.0

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        (full,) = super().ropes(source, fields, dims)
        theta = fields["rope_theta_window"] or self.theta_window
        if source.format == "gguf":
            return full, RopeSpec(theta, dims)
        if "rope_theta" not in hf_rope_parameters(fields) and "rope_theta" not in fields.values_by_key:
            full = replace(full, theta=self.theta_full)
        windowed = hf_rope_parameters(fields, "sliding_attention")
        if windowed == hf_rope_parameters(fields):  # one dictionary only: it speaks of the full layers
            return full, RopeSpec(theta, dims)
        local_theta = hf_theta(fields, windowed) if "rope_theta" in windowed else theta
        return full, rope_from_hf(fields, windowed, local_theta, dims)

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        return replace(spec, rope=1) if windowed else spec
