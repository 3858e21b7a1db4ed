"""Granite 3: Llama with fixed multipliers on embeddings, attention, residuals and logits."""

from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.fields import Fields


class Granite(Arch):
    name = "granite"
    gguf: ClassVar[tuple[str, ...]] = ("granite",)
    hf: ClassVar[tuple[str, ...]] = ("GraniteForCausalLM",)
    permuted_in_gguf = True

    def logit_scale(self, fields: Fields) -> float:
        return float(1.0 / fields["logit_scale"])
