"""Qwen3: a norm over each head of q and k, no biases."""

from localrun.model.archs.qwen2 import Qwen2


class Qwen3(Qwen2):
    name = "qwen3"
    gguf = ("qwen3",)
    hf = ("Qwen3ForCausalLM",)
    qk_norm = "head"
