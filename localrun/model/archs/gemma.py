"""Gemma 1: Llama with norms around one, embeddings that are scaled up, and gelu."""

from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.model.archs.base import Arch
from localrun.model.fields import Fields
from localrun.ops.types import Activation


class Gemma(Arch):
    name = "gemma"
    gguf: ClassVar[tuple[str, ...]] = ("gemma",)
    hf: ClassVar[tuple[str, ...]] = ("GemmaForCausalLM",)
    hf_norm_offset = 1.0
    activation = "gelu"
    bidirectional: ClassVar[tuple[object, ...]] = (True, "all", "vision")  # `use_bidirectional_attention` of a text

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        if fields.format != "gguf" and fields.value("use_bidirectional_attention") in self.bidirectional:
            raise ModelFileError("UNSUPPORTED", "its tokens see those after them, too", path=fields.path)

    def read_activation(self, fields: Fields) -> Activation:
        """The first checkpoints say `gelu`, and mean the one by tanh."""
        return "gelu" if fields.value("hidden_act") == "gelu" else super().read_activation(fields)

    def embed_scale(self, fields: Fields) -> float:
        return float(fields["hidden_size"] ** 0.5)
