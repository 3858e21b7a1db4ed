"""Mistral (GGUF files call it llama) and Ministral 3: Llama, in its first versions with a window in every layer.

Mistral Small 3, Ministral 3 and their kin see as well: their language model is read from under `text_config`.
"""

from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.config import ModelConfig

TEXT_KINDS = ("mistral", "ministral3")


class Mistral(Arch):
    name = "mistral"
    gguf: ClassVar[tuple[str, ...]] = ("mistral3",)
    hf: ClassVar[tuple[str, ...]] = ("MistralForCausalLM", "Ministral3ForCausalLM", "Mistral3ForConditionalGeneration")
    permuted_in_gguf = True
    windows = "always"

    def config(self, source: TensorSource) -> ModelConfig:
        """The config; one multimodal wrapper is shared by language models of several kinds."""
        text = source.metadata.get("text_config")
        kind = text.get("model_type", "mistral") if isinstance(text, dict) else "mistral"
        if kind not in TEXT_KINDS:
            shown = clean(str(kind)[:40])
            raise ModelFileError(
                "UNSUPPORTED",
                f"its language model, of the kind {shown!r}, is not supported",
                path=str(source.metadata.path),
            )
        return super().config(source)
