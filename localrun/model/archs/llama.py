"""Llama 1, 2 and 3.x, and the many models that share its shape."""

from localrun.model.archs.base import Arch


class Llama(Arch):
    name = "llama"
    gguf = ("llama",)
    hf = ("LlamaForCausalLM",)
    permuted_in_gguf = True
