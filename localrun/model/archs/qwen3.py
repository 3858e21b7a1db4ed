"""Qwen3: a norm over each head of q and k, no biases."""

from localrun.model.archs.base import Arch


class Qwen3(Arch):
    name = "qwen3"
    gguf = ("qwen3",)
    hf = ("Qwen3ForCausalLM",)
    qk_norm = "head"
