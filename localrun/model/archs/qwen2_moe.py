"""Qwen1.5 and 2 as mixtures of experts (A2.7B, 57B-A14B): Qwen2 with experts, and a shared one with a gate."""

from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_EXPERT_NAMES, HF_SHARED_EXPERT
from localrun.model.archs.qwen2 import Qwen2
from localrun.model.fields import Fields


class Qwen2Moe(Qwen2):
    name = "qwen2moe"
    gguf: ClassVar[tuple[str, ...]] = ("qwen2moe",)
    hf: ClassVar[tuple[str, ...]] = ("Qwen2MoeForCausalLM",)
    hf_names: ClassVar = {**HF_EXPERT_NAMES, **HF_SHARED_EXPERT}
    experts = ExpertRules(normalize=False, shared_gate=True)

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Without an explicit list, every other layer before `max_window_layers` is windowed."""
        pattern = Arch.window_pattern(self, fields)
        before = fields["max_window_layers"]
        return pattern or [i % 2 == 0 and i < before for i in range(fields["n_layers"])]
