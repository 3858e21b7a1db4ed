"""Llama 1, 2 and 3.x, and the many models that share its shape; a GGUF of it may be Mixtral, with experts."""

from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules


class Llama(Arch):
    name = "llama"
    gguf = ("llama",)
    hf = ("LlamaForCausalLM",)
    permuted_in_gguf = True
    experts = ExpertRules()
