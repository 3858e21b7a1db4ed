"""Base of matrices that a checkpoint stores in several tensors: codes in one, their scales in others.

Reading headers needs no numpy: the arithmetic is imported by the first read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.files import bad_file, shown
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

Tensors: TypeAlias = Mapping[str, TensorInfo]
ReadRows: TypeAlias = Callable[[TensorInfo, int, int | None], bytearray]  # (tensor, first row, rows; None: all)

# Few numbers, and which experts are chosen hangs on them: held in f32.
ROUTERS = (
    *(".gate.weight", ".router.weight", ".router.proj.weight", ".router.layer.weight", ".router.linear.weight"),
    "_expert_gate.weight",
)
# How names of a matrix end, and of those of all experts in one, which tools name after the parameter.
MATRICES = (".weight", ".experts.gate_up_proj", ".experts.down_proj")
HINT = "get this model unquantised, or as GGUF"


@dataclass(frozen=True)
class JoinedTensor(ABC):
    """One tensor of a model, made from `parts` in its files. `info` describes it in a type that is read everywhere."""

    info: TensorInfo
    parts: tuple[TensorInfo, ...]

    @abstractmethod
    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        """Bytes of some rows (runs of shape[-1] numbers) in the type of `info`."""


class OneTensor(JoinedTensor):
    """A tensor that the file has as it is, for what is made of it."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        return read_rows(self.parts[0], first_row, n_rows)


Joined: TypeAlias = dict[str, JoinedTensor]


def matrix_name(codes: str, ending: str) -> str:
    """Name of the matrix whose codes a tensor holds: its own without an ending. Empty for other tensors."""
    name = codes.removesuffix(ending)
    return name if codes.endswith(ending) and name.endswith(MATRICES) else ""


def appears_as(name: str, shape: tuple[int, ...], qtype: str, codes: TensorInfo) -> TensorInfo:
    """Description of a joined tensor; its place is that of its codes."""
    nbytes = QUANT_TYPES[qtype].nbytes(shape)
    return TensorInfo(name, shape, qtype, nbytes, codes.file, codes.offset, is_joined=True)


def misfit(codes: TensorInfo, why: str) -> ModelFileError:
    """The error for a tensor that does not fit those beside it, or the config."""
    return bad_file("BAD_TENSOR", f"the tensor {shown(codes.name)} {why}", codes.file, codes.offset)
