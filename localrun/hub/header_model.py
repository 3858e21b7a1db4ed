"""A model known by its headers alone, wherever its files are."""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError
from localrun.formats.files import Fetch
from localrun.formats.gguf_header import read_header
from localrun.formats.gguf_skim import skim_gguf
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorInfo
from localrun.model.rope import LONGROPE

MAX_TENSOR_BYTES = 1 << 16
_TOKENS = "tokenizer.ggml.tokens"


@dataclass(frozen=True)
class HeaderModel:
    """A model known by its headers. With `fetches`, one per file, small tensors can be read too.

    `fetched`: bytes that the headers took. There are no tensors where only key-values were read.
    """

    path: Path
    format: str
    metadata: Metadata
    fetched: int
    tensors: Mapping[str, TensorInfo] = field(default_factory=dict)
    fetches: Mapping[Path, Fetch] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        """Read a whole small tensor, such as the divisors of a rope. Raises HubError."""
        info = self.tensors[name]
        assert first_row == 0, "parts are of interest of weights only"
        assert n_rows is None
        if info.file not in self.fetches or info.nbytes > MAX_TENSOR_BYTES:
            raise HubError(f"{self.path} is not downloaded")
        return bytearray(self.fetches[info.file](info.offset, info.nbytes))

    def mapped(self, name: str) -> memoryview:
        raise HubError(f"{self.path} is not downloaded")

    def read_turned(self, name: str, matrix: int, columns: slice) -> bytearray:
        raise HubError(f"{self.path} is not downloaded")

    def same(self, name: str, other: str) -> bool:
        """Always False: tensors count as different until the files are on disk, which takes more memory."""
        return False


def read_key_values(fetch: Fetch, size: int, path: Path) -> Metadata:
    """Read the key-values of a GGUF; of the vocabulary only the length where that is enough."""
    values = skim_gguf(fetch, size, path)
    return Metadata(values if _is_enough(values) else read_header(fetch, size, path).metadata, path)


def _is_enough(values: Mapping[str, Any]) -> bool:
    """Whether the hyperparameters came before the vocabulary, as most converters write them."""
    arch = values.get("general.architecture")
    needed = ["block_count", "embedding_length", "attention.head_count", "context_length"]
    if f"{arch}.rope.scaling.type" in values:
        needed.append("rope.scaling.factor")
    return (_TOKENS in values or f"{arch}.vocab_size" in values) and all(f"{arch}.{key}" in values for key in needed)


def without_rope_tensors(model: HeaderModel) -> HeaderModel:
    """The model without its rope scaling, for a question that positions do not matter to.

    The divisors of a GGUF's longrope lie in tensors, which key-values alone do not have.
    """
    scaling = f"{model.metadata.get('general.architecture')}.rope.scaling."
    if model.format != "gguf" or model.metadata.get(scaling + "type") not in LONGROPE:
        return model
    values = {key: value for key, value in model.metadata.items() if not key.startswith(scaling)}
    return replace(model, metadata=Metadata(values, model.path))
