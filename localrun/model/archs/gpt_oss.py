"""gpt-oss: a mixture of experts with biases everywhere, learned sinks, and a window in every other layer."""

from dataclasses import replace
from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_GPT_OSS_NAMES
from localrun.model.config import LayerSpec, RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_gguf
from localrun.ops.types import CLAMP, SLOPE, Activation


class GptOss(Arch):
    name = "gpt-oss"
    gguf: ClassVar[tuple[str, ...]] = ("gpt-oss", "gptoss")
    hf = ("GptOssForCausalLM",)
    gguf_names: ClassVar = {"ffn_norm": "blk.{}.post_attention_norm.weight blk.{}.ffn_norm.weight"}
    hf_names = HF_GPT_OSS_NAMES
    activation = "clamped_silu"
    windows = "always"
    full_every = 2
    experts = ExpertRules(biases=True, transposed=True, in_turns=True)

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        for key, built_in in (("swiglu_limit", CLAMP), ("swiglu_alpha", SLOPE)):
            if fields.format != "gguf" and fields.value(key) not in (None, built_in):
                raise ModelFileError("UNSUPPORTED", f"{key} has to be {built_in}", path=fields.path)

    def base_layer(self, fields: Fields) -> LayerSpec:
        return replace(super().base_layer(fields), sinks=True)

    def read_activation(self, fields: Fields) -> Activation:
        return self.activation  # config.json says silu, which is the part of it that is not clamped

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        """Ropes with YaRN's ramp between whole or half pairs, as trained; a GGUF has no key for that."""
        if source.format == "gguf":
            usual = "yarn" if fields.prefix == "gptoss" else "linear"
            return (rope_from_gguf(source, fields, fields["rope_theta"], dims, truncate=False, usual=usual),)
        return super().ropes(source, fields, dims)
