"""Matrices of codes in blocks of types whose scales are fp16, or f32 where those of the file do not fit.

Scales in bf16 are multiplied by a power of two for the whole tensor, where that is exact; it comes back as a factor of
products. That is known once they are read: headers promise fp16 (formats/checkpoints/wide_scales.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.checkpoints.joined import HINT, Joined, JoinedTensor, ReadRows, appears_as
from localrun.formats.files import bad_file, shown
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import WIDE_SCALES, TensorInfo, factor_name

if TYPE_CHECKING:
    import numpy as np

# The type with f32 scales for the codes of one with fp16 scales.
WITH_F32_SCALES = {
    **dict.fromkeys(("Q4_1", "INT2_G64", "INT4_G64"), "INT4_F32_G32"),
    **dict.fromkeys(("Q5_1", "INT5_G64", "INT6_G32", "INT6_G64", "INT8_G32", "INT8_G64"), "INT8_F32_G32"),
    "Q4_0": "INT4_SYM_F32_G32",
    **dict.fromkeys(("Q5_0", "Q8_0"), "INT8_SYM_F32_G32"),
    **dict.fromkeys(("INT4_ZP_G32", "INT4_ZP_G128"), "INT4_ZP_F32_G32"),
    "INT8_ZP_G32": "INT8_ZP_F32_G32",
}


def has_f32_scales(qtype: str) -> bool:
    """Whether a type of integer codes has f32 scales."""
    return "_F32_" in qtype


@dataclass(frozen=True)
class ScaledCodes(JoinedTensor):
    """A matrix of codes, the first of its parts, and their scales."""

    _exponent: list[int] = field(default_factory=list, compare=False, repr=False, kw_only=True)  # once it is known

    @abstractmethod
    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        """Every number that has to be fp16, as flat f32."""

    def exponent(self, read_rows: ReadRows) -> int:
        """The power of two to multiply scales by, so that fp16 holds all of them exactly.

        Raises ModelFileError WIDE_SCALES where there is none.
        """
        if not self._exponent:
            from localrun.formats.checkpoints.codes import fp16_exponent

            found = fp16_exponent(self.all_scales(read_rows))
            if found is None:
                codes = self.parts[0]
                told = f"the scales of the tensor {shown(codes.name)} lie too far apart for fp16"
                raise bad_file(WIDE_SCALES, told, codes.file, codes.offset, HINT)
            self._exponent.append(found)
        return self._exponent[0]

    def fits_fp16(self, read_rows: ReadRows) -> bool:
        """Whether fp16 holds all scales. Raises ModelFileError where they cannot be read."""
        try:
            self.exponent(read_rows)
        except ModelFileError as error:
            if error.code != WIDE_SCALES:
                raise
            return False
        return True

    def held_scales(self, read_rows: ReadRows, scales: np.ndarray, group: int) -> np.ndarray:
        """Scales of groups [n, groups] as blocks store them: fp16 or f32 [n, blocks]."""
        import numpy as np

        if has_f32_scales(self.info.qtype):
            return self.of_blocks(scales.astype("<f4"), group)
        return self.of_blocks(np.ldexp(scales, self.exponent(read_rows)).astype("<f2"), group)

    def of_blocks(self, of_groups: np.ndarray, group: int) -> np.ndarray:
        """Repeat the numbers of groups for each of their blocks. [n, groups] -> [n, blocks]"""
        block = QUANT_TYPES[self.info.qtype].block_size
        n_blocks = self.info.shape[-1] // block
        return of_groups.repeat(min(group // block, n_blocks), axis=1)[:, :n_blocks]


@dataclass(frozen=True)
class PowerOfTwo(JoinedTensor):
    """Factor on the products of a matrix that undoes the power of two on its scales."""

    matrix: ScaledCodes

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        factor = np.ldexp(np.float32(1), -self.matrix.exponent(read_rows))
        return bytearray(np.full(self.info.shape, factor, "<f4").data)


def with_factor(matrix: ScaledCodes, scales: TensorInfo) -> Joined:
    """A matrix by name and, where its scales may not be exact in fp16, the factor of its products."""
    name, shape = matrix.info.name, matrix.info.shape
    found: Joined = {name: matrix}
    if matrix.info.qtype != "F32" and scales.qtype == "BF16":
        factor = factor_name(name)
        of_each = shape[:1] if len(shape) == 3 else (1,)
        found[factor] = PowerOfTwo(appears_as(factor, of_each, "F32", scales), matrix.parts[1:], matrix)
    return found
