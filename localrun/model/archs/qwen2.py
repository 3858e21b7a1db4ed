"""Qwen2 and 2.5: Llama with biases on q, k and v."""

from localrun.model.archs.base import Arch


class Qwen2(Arch):
    name = "qwen2"
    gguf = ("qwen2",)
    hf = ("Qwen2ForCausalLM",)
