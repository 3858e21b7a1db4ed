"""Phi-3 and 4-mini: q, k and v in one tensor, gate and up in another, longrope."""

from localrun.model.archs.base import Arch


class Phi3(Arch):
    name = "phi3"
    gguf = ("phi3",)
    hf = ("Phi3ForCausalLM",)
    qkv_fused = True
    windows = "always"
