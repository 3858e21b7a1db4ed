"""Granite 3: Llama with fixed multipliers on embeddings, attention, residuals and logits."""

from dataclasses import replace
from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields


class Granite(Arch):
    name = "granite"
    gguf: ClassVar[tuple[str, ...]] = ("granite",)
    hf: ClassVar[tuple[str, ...]] = ("GraniteForCausalLM",)
    permuted_in_gguf = True

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        return spec if self.uses_rope(fields) else replace(spec, rope=None)

    def uses_rope(self, fields: Fields) -> bool:
        """Whether positions are encoded; a GGUF of a model without rope says that its rope is not finetuned."""
        return fields.format != "gguf" or fields.value(f"{fields.prefix}.rope.scaling.finetuned") is not False

    def logit_scale(self, fields: Fields) -> float:
        return float(1.0 / fields["logit_scale"])
