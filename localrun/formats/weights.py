"""Tensors on disk, whatever their container: how many, and the bytes of one."""

from collections.abc import Mapping
from dataclasses import field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.files import Stamp, bad_file, map_range, read_range, shown
from localrun.formats.metadata import Metadata
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    from localrun.formats.checkpoints.joined import JoinedTensor

_PIECE_BYTES = 8 << 20


@dataclass(frozen=True, kw_only=True)
class WeightFiles:
    """Base of GGUF files and safetensors folders. `stamps` holds every file as it was when it was checked, `beside`
    those without tensors that tell how ids come about, as they were before they were read. `joined` are those of
    `tensors` that the files have otherwise: in several, or in one with others."""

    path: Path
    metadata: Metadata
    tensors: Mapping[str, TensorInfo]
    stamps: Mapping[Path, Stamp]
    beside: Mapping[Path, Stamp] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # odd, but harmless
    joined: "Mapping[str, JoinedTensor]" = field(default_factory=dict)
    _compared: dict[tuple[str, str], bool] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold tensors, in their order."""
        return tuple(self.stamps)

    @property
    def n_params(self) -> int:
        """Elements of all tensors together."""
        return sum(prod(info.shape) for info in self.tensors.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors in the files."""
        whole = sum(info.nbytes for info in self.tensors.values() if not info.is_joined)
        parts = {part.name: part.nbytes for one in self.joined.values() for part in one.parts}
        return whole + sum(parts.values())

    def read(self, name: str, first_row: int = 0, n_rows: int | None = None) -> bytearray:
        """The bytes of a tensor, or of `n_rows` of its rows: runs of shape[-1] elements, counted over all of it.

        Read from the file into new memory each time; any thread may call. Raises ModelFileError MISSING_TENSOR, or
        CHANGED when the file is not the one that was checked; ValueError for rows that do not exist.
        """
        one = self.joined.get(name)
        if one is None:
            return self.read_rows(self.info(name), first_row, n_rows)
        first_row, count = rows_of(one.info, first_row, n_rows)
        return one.read(self.read_rows, first_row, count)

    def mapped(self, name: str) -> memoryview:
        """The bytes of a tensor, read from the file as they are looked at, or at once where they are joined. Raises as
        `read` does."""
        if name in self.joined:
            return memoryview(self.read(name))
        info = self.info(name)
        return map_range(info.file, info.offset, info.nbytes, self.stamps[info.file])

    def read_turned(self, name: str, matrix: int, columns: slice) -> bytearray:
        """Some columns of a matrix of a tensor of floats [n, rows, columns], as rows. Raises as `read` does."""
        import numpy as np

        _, rows, _ = self.info(name).shape
        numbers = np.frombuffer(self.read(name, matrix * rows, rows), np.uint8).reshape(
            rows, self.info(name).shape[2], -1
        )
        return bytearray(np.ascontiguousarray(numbers[:, columns].swapaxes(0, 1)).data)

    def same(self, name: str, other: str) -> bool:
        """Whether two tensors agree in shape, type and every byte. They are read piece by piece up to the first
        difference, and once. Raises as `read` does."""
        pair = (name, other)
        if pair not in self._compared:
            self._compared[pair] = self._compare(self.info(name), self.info(other))
        return self._compared[pair]

    def _compare(self, one: TensorInfo, other: TensorInfo) -> bool:
        if (one.shape, one.qtype) != (other.shape, other.qtype):
            return False
        row_bytes = QUANT_TYPES[one.qtype].nbytes(one.shape[-1:])
        n_rows, step = one.nbytes // row_bytes, max(1, _PIECE_BYTES // row_bytes)
        pieces = ((first, min(step, n_rows - first)) for first in range(0, n_rows, step))
        return all(self.read(one.name, *piece) == self.read(other.name, *piece) for piece in pieces)

    def info(self, name: str) -> TensorInfo:
        """Description of a tensor by name; ModelFileError where there is none."""
        if (info := self.tensors.get(name)) is None:
            raise bad_file("MISSING_TENSOR", f"there is no tensor {shown(name)}", self.path)
        return info

    def read_rows(self, info: TensorInfo, first_row: int, n_rows: int | None) -> bytearray:
        """The bytes of some rows of a tensor as it lies in its file."""
        row_bytes = QUANT_TYPES[info.qtype].nbytes(info.shape[-1:])
        first_row, count = rows_of(info, first_row, n_rows)
        offset = info.offset + first_row * row_bytes
        return read_range(info.file, offset, count * row_bytes, self.stamps[info.file])


def rows_of(info: TensorInfo, first_row: int, n_rows: int | None) -> tuple[int, int]:
    """The first of some rows of a tensor, and how many; None: all that are left. ValueError for rows it has not."""
    total = info.nbytes // QUANT_TYPES[info.qtype].nbytes(info.shape[-1:])
    count = total - first_row if n_rows is None else n_rows
    if not 0 <= first_row <= first_row + count <= total:
        raise ValueError(f"rows {first_row} to {first_row + count} of a tensor of {total} rows")
    return first_row, count
