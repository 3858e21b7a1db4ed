"""SmolLM3: Llama whose every fourth layer knows nothing of positions."""

from dataclasses import replace

from localrun.model.archs.base import Arch
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields

NO_ROPE_STEP = 4


class SmolLM3(Arch):
    name = "smollm3"
    gguf = ("smollm3",)
    hf = ("SmolLM3ForCausalLM",)
    permuted_in_gguf = True

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        uses_rope = fields.values_by_key.get("no_rope_layers")  # one flag a layer, 1 where rope is used
        if isinstance(uses_rope, list) and len(uses_rope) == fields["n_layers"]:
            return spec if uses_rope[index] else replace(spec, rope=None)
        step = fields["no_rope_step"] or NO_ROPE_STEP
        return replace(spec, rope=None) if (index + 1) % step == 0 else spec
