"""Qwen3 as a mixture of experts (30B-A3B, Coder): each layer's feed-forward part is a few of many small networks."""

from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_EXPERT_NAMES, HF_FUSED_EXPERTS
from localrun.model.archs.qwen3 import Qwen3
from localrun.model.fields import Fields


class Qwen3Moe(Qwen3):
    name = "qwen3moe"
    gguf: ClassVar[tuple[str, ...]] = ("qwen3moe",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen3MoeForCausalLM",)
    hf_names: ClassVar = HF_EXPERT_NAMES
    experts = ExpertRules(hf_normalize=False)

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """The window pattern: where windows are used, every layer has one."""
        return Arch.window_pattern(self, fields)


class Qwen3VLMoe(Qwen3Moe):
    """The language model of Qwen3-VL's mixtures (30B-A3B, 235B-A22B): Qwen3's, all experts of a layer in one tensor."""

    name = "qwen3vlmoe"
    gguf: ClassVar[tuple[str, ...]] = ("qwen3vlmoe",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen3VLMoeForConditionalGeneration",)
    hf_names: ClassVar = {**HF_EXPERT_NAMES, **HF_FUSED_EXPERTS}
    experts = ExpertRules(transposed=None)
    axes = Qwen3.axes
