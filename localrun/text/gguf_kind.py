"""The kind of a GGUF's tokenizer, for lists and checks of a file: without its vocabulary, and without numpy."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.files import shown
from localrun.formats.metadata import Metadata
from localrun.text.pretokenize import PRETOKENIZERS, PreTokenizer

PREFIX = "tokenizer.ggml."
KINDS = {"gpt2": "bpe", "gemma4": "bpe", "llama": "spm", "t5": "unigram", "bert": "wordpiece"}
MERGED = {"gpt2", "gemma4"}
# By architecture, where Ollama's converter wrote none that tells.
_PRE_NAMES = {"gptoss": "gpt-4o", "lfm2": "lfm2", "mistral3": "tekken"}


@dataclass(frozen=True)
class TokenizerKind:
    """Kind of tokenizer and of pre-tokenizer in a file. Raises ModelFileError: UNSUPPORTED for an unknown one."""

    data: Metadata
    path: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any], path: str) -> Self:
        present = {key: value for key, value in metadata.items() if value is not None}
        return cls(Metadata(present, Path(path or "GGUF metadata")), path)

    @cached_property
    def model(self) -> str:
        """The kind of tokenizer, a key of KINDS."""
        model = self.data.get_str(PREFIX + "model", "")
        if model == "llama" and self.data.get_str(PREFIX + "pre", "") == "gemma4" and PREFIX + "merges" in self.data:
            return "gemma4"  # as Ollama's converter wrote it
        if not model:
            raise self._unsupported("the file has no tokenizer")
        if model not in KINDS:
            raise self._unsupported(f"the tokenizer is of a kind localrun does not know: {shown(model)}")
        return model

    @property
    def pre_name(self) -> str:
        """Name of the pre-tokenizer in the file; empty where neither the file nor the architecture says."""
        name = self.data.get_str(PREFIX + "pre", "")
        return (
            name if name not in ("", "default") else _PRE_NAMES.get(self.data.get_str("general.architecture", ""), name)
        )

    @cached_property
    def pre(self) -> PreTokenizer:
        if self.model not in MERGED:
            return PRETOKENIZERS["default"]
        name = "gemma4" if self.model == "gemma4" else self.pre_name or "default"
        if name not in PRETOKENIZERS:
            message = f"the tokenizer splits words in a way localrun does not know: pre-tokenizer {shown(name)}"
            raise self._unsupported(message)
        return PRETOKENIZERS[name]

    def check_kind(self) -> None:
        """Raise UNSUPPORTED for an unknown kind of tokenizer."""
        assert self.pre

    def _unsupported(self, message: str) -> ModelFileError:
        return ModelFileError("UNSUPPORTED", message, path=self.path, hint="try another conversion of the model")
