"""Qwen3 as a mixture of experts (30B-A3B, Coder): each layer's feed-forward part is a few of many small networks."""

from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_EXPERT_NAMES
from localrun.model.archs.qwen3 import Qwen3
from localrun.model.fields import Fields


class Qwen3Moe(Qwen3):
    name = "qwen3moe"
    gguf = ("qwen3moe",)
    hf = ("Qwen3MoeForCausalLM",)
    hf_names = HF_EXPERT_NAMES
    experts = ExpertRules(hf_normalize=False)

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Where windows are used, they are in every layer."""
        return Arch.window_pattern(self, fields)
