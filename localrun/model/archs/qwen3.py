"""Qwen3, also as the language model of Qwen3-VL: a norm over each head of q and k, no biases."""

from typing import ClassVar

from localrun.model.archs.qwen2 import Qwen2
from localrun.model.archs.rope_axes import AxisRule


class Qwen3(Qwen2):
    name = "qwen3"
    gguf: ClassVar[tuple[str, ...]] = ("qwen3", "qwen3vl")
    hf: ClassVar[tuple[str, ...]] = ("Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration")
    qk_norm = "head"
    axes = AxisRule(interleaved=True, sections=(24, 20, 20))
