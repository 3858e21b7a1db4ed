"""Gemma 3 (text): five windowed layers to each full one, each kind with its own rope; norms on q and k heads."""

from dataclasses import replace
from typing import ClassVar

from localrun.formats.source import TensorSource
from localrun.model.archs.gemma2 import Gemma2
from localrun.model.archs.names import HF_POST_NORM_NAMES
from localrun.model.archs.reading import WINDOWED, hf_rope_parameters, hf_theta
from localrun.model.config import RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_hf

STRETCH, STRETCHED_CONTEXT = 8.0, 131_072  # for models with at least this context


class Gemma3(Gemma2):
    name = "gemma3"
    gguf = ("gemma3",)
    hf: ClassVar[tuple[str, ...]] = ("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration")
    hf_names = HF_POST_NORM_NAMES
    qk_norm = "head"
    full_every = 6
    window_rope = 1
    n_layers_27b = 62
    defaults: ClassVar = {  # the larger models' config.json holds little more than sizes
        "n_heads": 8,
        "n_kv_heads": 4,
        "head_dim": 256,
        "vocab_size": 262_208,
        "max_context": 131_072,
        "rms_eps": 1e-6,
        "query_pre_attn_scalar": 256.0,
        "rope_theta": 1_000_000.0,
        "rope_theta_window": 10_000.0,
    }

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        (full,) = super().ropes(source, fields, dims)
        theta = fields["rope_theta_window"]
        if source.format == "gguf":
            return self.stretched(fields, full), RopeSpec(theta, dims)
        windowed = hf_rope_parameters(fields, WINDOWED)
        local_theta = hf_theta(fields, windowed) if "rope_theta" in windowed else theta
        return full, rope_from_hf(fields, windowed, local_theta, dims)

    def stretched(self, fields: Fields, full: RopeSpec) -> RopeSpec:
        """The rope of full layers.

        For multimodal models Ollama's converter left out that it is scaled.
        """
        sees = any(fields.value(f"{fields.prefix}.{key}") for key in ("mm.tokens_per_image", "vision.block_count"))
        says = fields.value(f"{fields.prefix}.rope.scaling.type") or fields.value(
            f"{fields.prefix}.rope.scaling.factor"
        )
        if not sees or says or fields["max_context"] < STRETCHED_CONTEXT:
            return full
        return replace(full, divisors=(STRETCH,) * (full.dims // 2))
