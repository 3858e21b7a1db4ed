"""Mistral: Llama with a sliding window in every layer (GGUF files call it llama)."""

from localrun.model.archs.base import Arch


class Mistral(Arch):
    name = "mistral"
    gguf = ()
    hf = ("MistralForCausalLM",)
    windows = "always"
