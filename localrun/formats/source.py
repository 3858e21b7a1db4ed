"""Where weights come from: what GGUF files and safetensors folders have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from localrun.base.dataclass import dataclass
from localrun.formats.metadata import Metadata

# Code of the ModelFileError where fp16 does not hold the scales of a matrix: formats/checkpoints/wide_scales.py helps.
WIDE_SCALES = "WIDE_SCALES"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of a file. `shape` is in torch order (rows first), `offset` absolute in `file`, sizes in bytes.

    `is_joined`: the file has it in several tensors (formats/checkpoints), and `nbytes` are those that reading gives.
    `is_turned`: the file has it as [n, columns, rows], and `read_turned` reads its rows.
    """

    name: str
    shape: tuple[int, ...]
    qtype: str  # a key of formats.quant.QUANT_TYPES
    nbytes: int
    file: Path
    offset: int
    is_joined: bool = False
    is_turned: bool = False


class TensorSource(Protocol):
    """An opened and fully validated model file or folder; nothing of the weights is in memory yet."""

    @property
    def path(self) -> Path: ...
    @property
    def format(self) -> str: ...  # "gguf" | "safetensors"
    @property
    def metadata(self) -> Metadata: ...  # GGUF key-values, or config.json
    @property
    def tensors(self) -> Mapping[str, TensorInfo]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...  # odd, but harmless
    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        """The raw bytes of a tensor (or of some of its rows), read from the file, not mapped."""
        ...

    def mapped(self, name: str) -> memoryview:
        """The raw bytes of a tensor, which stay in the file and are read as they are looked at."""
        ...

    def read_turned(self, name: str, matrix: int, columns: slice) -> bytearray:
        """Some columns of a matrix of a tensor of floats [n, rows, columns], as rows of the type in `tensors`."""
        ...

    def same(self, name: str, other: str) -> bool:
        """Whether two tensors agree in shape, type and every byte."""
        ...


def factor_name(matrix: str) -> str:
    """Name of the tensor with a factor of a matrix's products."""
    return matrix.removesuffix("weight") + "scale"
