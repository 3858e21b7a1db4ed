"""AWQ: codes of 4 bits, less a zero point, times a scale for each group of columns.

As AutoAWQ packs them: for `gemm` eight rows share a word in an order of their own (awq/modules/linear/gemm.py), and
matrices lie turned; for `gemv` eight columns share one, one after the other (gemv.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import with_factor
from localrun.formats.checkpoints.integers import CodedRows, IntegerCodes, held_type
from localrun.formats.checkpoints.joined import Joined, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.checkpoints.turned import TurnedCodes, packed_matrices

if TYPE_CHECKING:
    import numpy as np

_BITS, _IN_WORD = 4, 8
PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # where the codes of eight rows lie in a word


def join_awq(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of the `gemm` order with its scales. ModelFileError for parts that do not fit together."""
    found: Joined = {}
    matrices = ReadOnce()
    for stem, (codes, zeros, scales) in packed_matrices(tensors):
        shape = codes.shape[1] * _IN_WORD, codes.shape[0]
        n_groups = scales.shape[0]
        if scales.shape[1] != shape[0] or zeros.shape != (n_groups, codes.shape[1]) or shape[1] % n_groups:
            told = f"zero points of shape {list(zeros.shape)} and scales of shape {list(scales.shape)}"
            raise misfit(codes, f"of AWQ, of shape {list(codes.shape)}, has {told}")
        name, group = f"{stem}weight", shape[1] // n_groups
        info = appears_as(name, shape, held_type(name, shape[1], group, scales.qtype, _BITS, symmetric=False), codes)
        found |= with_factor(GemmCodes(info, (codes, zeros, scales), group, _BITS, matrices, PLACES), scales)
    return found


def join_awq_gemv(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of the `gemv` order, whose scales and zero points are padded to whole words."""
    found: Joined = {}
    for stem, (codes, zeros, scales) in packed_matrices(tensors):
        shape = codes.shape[0], codes.shape[1] * _IN_WORD
        said = config.get("group_size")
        group = said if type(said) is int and said > 0 else shape[1]
        n_groups = shape[1] // group
        fits = scales.shape == (shape[0], zeros.shape[1] * _IN_WORD) and zeros.shape[0] == shape[0]
        if shape[1] % group or not fits or not n_groups <= scales.shape[1]:
            told = f"zero points of shape {list(zeros.shape)} and scales of shape {list(scales.shape)}"
            raise misfit(codes, f"of AWQ, of shape {list(codes.shape)} in groups of {group:,}, has {told}")
        name = f"{stem}weight"
        info = appears_as(name, shape, held_type(name, shape[1], group, scales.qtype, _BITS, symmetric=False), codes)
        found |= with_factor(GemvCodes(info, (codes, zeros, scales), group), scales)
    return found


@dataclass(frozen=True)
class GemmCodes(TurnedCodes):
    """Words of eight rows each, in these places."""

    places: tuple[int, ...]

    def unpack(self, words: np.ndarray, rows: slice) -> np.ndarray:
        import numpy as np

        first, last = rows.start // _IN_WORD, -(-rows.stop // _IN_WORD)
        shifts = np.array(self.places, np.uint32)[:, None] * np.uint32(_BITS)
        codes: np.ndarray = (words[first:last, None] >> shifts & np.uint32(15)).astype(np.int8)
        within = slice(rows.start - first * _IN_WORD, rows.stop - first * _IN_WORD)
        return codes.reshape(-1, words.shape[1])[within]

    def unpack_zeros(self, words: np.ndarray) -> np.ndarray:
        return self.unpack(words.T, slice(0, self.info.shape[0])).T


@dataclass(frozen=True)
class GemvCodes(IntegerCodes):
    """Words of eight columns each; `parts` are codes, zero points and scales, all of them in rows."""

    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> CodedRows:
        import numpy as np

        from localrun.formats.checkpoints.codes import unpack_words
        from localrun.formats.checkpoints.parts import read_bytes

        n_cols, n_groups = self.info.shape[1], self.info.shape[1] // self.group
        codes, zeros = (
            unpack_words(read_bytes(read_rows, part, first_row, n_rows).view("<u4").reshape(n_rows, -1), _BITS, count)
            for part, count in zip(self.parts, (n_cols, n_groups), strict=False)
        )
        scales = self._numbers(read_rows, first_row, n_rows)
        return CodedRows(codes.astype(np.int8), zeros.astype(np.int8), scales)

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        return self._numbers(read_rows, 0, self.info.shape[0]).ravel()

    def _numbers(self, read_rows: ReadRows, first_row: int, n_rows: int) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        return read_numbers(read_rows, self.parts[2], first_row, n_rows)[:, : self.info.shape[1] // self.group]
