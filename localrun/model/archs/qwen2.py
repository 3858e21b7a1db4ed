"""Qwen2 and 2.5: Llama with biases on q, k and v."""

from localrun.model.archs.base import Arch
from localrun.model.fields import Fields


class Qwen2(Arch):
    name = "qwen2"
    gguf = ("qwen2",)
    hf = ("Qwen2ForCausalLM",)
    windows = "flagged"

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Without an explicit list, the layers from `max_window_layers` on are windowed."""
        return super().window_pattern(fields) or [i >= fields["max_window_layers"] for i in range(fields["n_layers"])]
