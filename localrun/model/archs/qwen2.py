"""Qwen2 and 2.5, also as the language model of Qwen2-VL and 2.5-VL: Llama with biases on q, k and v."""

from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.fields import Fields


class Qwen2(Arch):
    name = "qwen2"
    gguf: ClassVar[tuple[str, ...]] = ("qwen2", "qwen2vl", "qwen25vl")
    hf: ClassVar[tuple[str, ...]] = (
        "Qwen2ForCausalLM",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
    )
    windows = "flagged"

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Without an explicit list, the layers from `max_window_layers` on are windowed."""
        return super().window_pattern(fields) or [i >= fields["max_window_layers"] for i in range(fields["n_layers"])]
