"""SmolLM3: Llama whose every fourth layer knows nothing of positions."""

from dataclasses import replace
from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields


class SmolLM3(Arch):
    name = "smollm3"
    gguf = ("smollm3",)
    hf = ("SmolLM3ForCausalLM",)
    permuted_in_gguf = True
    windows = "flagged"
    defaults: ClassVar = {"rope_theta": 2_000_000.0, "no_rope_step": 4}

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        return spec if self.uses_rope(fields)[index] else replace(spec, rope=None)

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Without an explicit list, the layers without rope are windowed."""
        return super().window_pattern(fields) or [not rope for rope in self.uses_rope(fields)]

    def uses_rope(self, fields: Fields) -> list[bool]:
        """Whether each layer encodes positions: `no_rope_layers` holds, despite its name, 1 where it does."""
        n_layers = fields["n_layers"]
        flags = fields.value("no_rope_layers")
        if flags is None:
            return [(index + 1) % fields["no_rope_step"] != 0 for index in range(n_layers)]
        if not isinstance(flags, list) or len(flags) != n_layers:
            raise fields.error(f"no_rope_layers should hold one flag for each of {n_layers} layers")
        return [bool(flag) for flag in flags]
