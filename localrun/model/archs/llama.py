"""Llama 1, 2 and 3.x, and the many models that share its shape, also as the language model of Idefics3 and SmolVLM; a
GGUF of it may be Mixtral, with experts."""

from typing import ClassVar

from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules


class Llama(Arch):
    name = "llama"
    gguf = ("llama",)
    hf: ClassVar[tuple[str, ...]] = (
        "LlamaForCausalLM",
        "Idefics3ForConditionalGeneration",
        "SmolVLMForConditionalGeneration",
    )
    permuted_in_gguf = True
    experts = ExpertRules()
