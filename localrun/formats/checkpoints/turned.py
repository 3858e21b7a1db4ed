"""Matrices that are stored transposed: their rows are columns in the file, so they are read whole."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.integers import SCALE_TYPES, CodedRows, IntegerCodes
from localrun.formats.checkpoints.joined import ReadRows, Tensors, misfit
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Turned:
    """The parts of a matrix, transposed: codes as packed, with one or a few rows per word."""

    words: np.ndarray  # uint32 [rows or eighths of them, words]
    zeros: np.ndarray  # int8, of 8 bits int16 [rows, groups]
    scales: np.ndarray  # f32 [rows, groups]


def packed_matrices(tensors: Tensors) -> list[tuple[str, tuple[TensorInfo, TensorInfo, TensorInfo]]]:
    """Codes, zero points and scales of each matrix, by the prefix of their names.

    Raises ModelFileError where one is missing, or has a wrong type or number of dimensions.
    """
    found = []
    for name, codes in tensors.items():
        stem = name.removesuffix("qweight")
        if stem == name:
            continue
        zeros, scales = tensors.get(f"{stem}qzeros"), tensors.get(f"{stem}scales")
        if zeros is None or scales is None:
            raise misfit(codes, "has no zero points or no scales beside it")
        if any(len(part.shape) != 2 for part in (codes, zeros, scales)):
            raise misfit(codes, "is no matrix, or its zero points or scales are none")
        if {codes.qtype, zeros.qtype} != {"I32"} or scales.qtype not in SCALE_TYPES:
            told = f"of types {codes.qtype} and {zeros.qtype}, with scales of type {scales.qtype}"
            raise misfit(codes, f"and its zero points are {told}, which they cannot be")
        found.append((stem, (codes, zeros, scales)))
    return found


@dataclass(frozen=True)
class TurnedCodes(IntegerCodes):
    """A matrix whose parts are codes, zero points and scales, [columns or groups, rows]: the first two in words."""

    bits: int
    matrices: ReadOnce = field(compare=False, repr=False)

    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> CodedRows:
        whole = self.matrices.get(self.info.name, self.info.shape[0], n_rows, lambda: self.read_turned(read_rows))
        wanted = slice(first_row, first_row + n_rows)
        return CodedRows(self.unpack(whole.words, wanted), whole.zeros[wanted], whole.scales[wanted])

    @abstractmethod
    def unpack(self, words: np.ndarray, rows: slice) -> np.ndarray:
        """Codes of some rows of turned words. -> int8, of 8 bits int16 [rows, columns]"""

    @abstractmethod
    def unpack_zeros(self, words: np.ndarray) -> np.ndarray:
        """Zero points as they lie. uint32 [groups, words] -> of the same type [groups, rows]"""

    def read_turned(self, read_rows: ReadRows) -> Turned:
        from localrun.formats.checkpoints.parts import read_numbers

        words, zeros = (read_words(read_rows, part) for part in self.parts[:2])
        parts = words, self.unpack_zeros(zeros), read_numbers(read_rows, self.parts[2])
        return Turned(*map(turn, parts))

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        return read_numbers(read_rows, self.parts[2]).ravel()


def turn(matrix: np.ndarray) -> np.ndarray:
    """Transpose a matrix, a few rows at a time, which stay in the processor's caches."""
    import numpy as np

    found = np.empty(matrix.shape[::-1], matrix.dtype)
    for first in range(0, len(matrix), _ROWS_AT_ONCE):
        found[:, first : first + _ROWS_AT_ONCE] = matrix[first : first + _ROWS_AT_ONCE].T
    return found


def read_words(read_rows: ReadRows, part: TensorInfo) -> np.ndarray:
    """A matrix of 32-bit words. -> uint32 [rows, columns]"""
    from localrun.formats.checkpoints.parts import read_bytes

    words: np.ndarray = read_bytes(read_rows, part).view("<u4").reshape(part.shape)
    return words
