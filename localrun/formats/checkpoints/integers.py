"""Integer matrices: a code minus its zero point, times a scale shared by a group of neighbours."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import ScaledCodes, has_f32_scales
from localrun.formats.checkpoints.joined import ROUTERS, ReadRows, misfit
from localrun.formats.quant import QUANT_TYPES

if TYPE_CHECKING:
    import numpy as np

SCALE_TYPES = ("F32", "F16", "BF16")
_BLOCK = 32
_LEVELS = {  # the least and the greatest number of each type
    "Q4_0": (-8, 7),
    "Q5_0": (-16, 15),
    "Q8_0": (-128, 127),
    **dict.fromkeys(("INT4_SYM_F32_G32", "INT4_SYM_F32_G128"), (-8, 7)),
    **dict.fromkeys(("INT8_SYM_F32_G32", "INT8_SYM_F32_G128"), (-128, 127)),
}
_ZERO_POINTS = {  # bits of the types that have zero points
    **dict.fromkeys(("INT4_ZP_G32", "INT4_ZP_G128", "INT4_ZP_F32_G32"), 4),
    **dict.fromkeys(("INT8_ZP_G32", "INT8_ZP_F32_G32"), 8),
}


def reach(bits: int, symmetric: bool) -> tuple[int, int]:
    """Range of codes minus zero points: for zero points in the middle, or any."""
    half, all_codes = 1 << (bits - 1), (1 << bits) - 1
    return (-half, half - 1) if symmetric else (-all_codes, all_codes)


def level_type(bits: int) -> type[np.int8] | type[np.int16]:
    """The smallest type that holds codes minus zero points."""
    import numpy as np

    return np.int8 if bits < 8 else np.int16


def held_type(name: str, columns: int, group: int, scales: str, bits: int, symmetric: bool) -> str:
    """The type that holds the same numbers in the fewest bits; F32 where none does, and for routers.

    `scales` is the type of the scales; `bits` are those of a code.
    """
    if group % _BLOCK or columns % _BLOCK or name.endswith(ROUTERS):
        return "F32"
    levels = reach(bits, symmetric)
    fits = [qtype for qtype, (least, most) in _LEVELS.items() if least <= levels[0] and levels[1] <= most]
    if not symmetric:
        fits += [qtype for qtype, most in _ZERO_POINTS.items() if bits <= most]
    rows = [QUANT_TYPES[qtype] for qtype in fits if has_f32_scales(qtype) == (scales == "F32")]
    whole = [row for row in rows if group % row.block_size == columns % row.block_size == 0]
    return min(whole, key=lambda row: row.bits).name


class CodedRows(NamedTuple):
    """Rows of a matrix: codes, and what is shared by a group of them."""

    codes: np.ndarray  # int8, or of 8 bits int16 [n, columns]
    zeros: (
        np.ndarray | None
    )  # likewise [n, groups], to be subtracted; None: zero is in the middle, and codes are signed
    scales: np.ndarray  # f32 [n, groups]


@dataclass(frozen=True)
class IntegerCodes(ScaledCodes):
    """Codes, the first of `parts`, with a scale and a zero point for each `group` columns of a row."""

    group: int

    @abstractmethod
    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> CodedRows:
        """Some rows as the file has them."""

    def groups(self, read_rows: ReadRows) -> np.ndarray | None:
        """Group of each column; None where groups are contiguous. Raises ModelFileError."""
        return None

    def sorted_columns(self, groups: np.ndarray) -> np.ndarray:
        """The order of columns in which a packed matrix is held. Raises ModelFileError."""
        raise NotImplementedError("its groups are contiguous")

    def of_columns(self, of_groups: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
        """Repeat the numbers of groups for each of their columns. [n, groups] -> [n, columns]"""
        if groups is not None:
            return of_groups[:, groups]
        n_cols = self.info.shape[-1]
        return of_groups.repeat(min(self.group, n_cols), axis=1)[:, :n_cols]

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.codes import in_blocks, symmetric_blocks, zero_point_blocks

        codes, zeros, scales = self.rows(read_rows, first_row, n_rows)
        groups, qtype = self.groups(read_rows), self.info.qtype
        if groups is not None and qtype != "F32":
            codes, groups = codes[:, self.sorted_columns(groups)], None
        if bits := _ZERO_POINTS.get(qtype):
            assert zeros is not None, "it has zero points"
            of_blocks = self.held_scales(read_rows, scales, self.group), self.of_blocks(zeros, self.group)
            return zero_point_blocks(codes.astype(np.uint8), bits, *of_blocks)
        levels = codes if zeros is None else codes - self.of_columns(zeros, groups)
        if qtype == "F32":
            with np.errstate(over="ignore"):  # numbers that are none are refused with their row
                numbers = levels * self.of_columns(scales, groups)
            return bytearray(np.ascontiguousarray(numbers, "<f4").data)
        least, most = _LEVELS[qtype]
        if levels.min() < least or levels.max() > most:
            raise misfit(self.parts[0], "has zero points that its config rules out")
        held = self.held_scales(read_rows, scales, self.group)
        if has_f32_scales(qtype):
            return symmetric_blocks(levels, 4 if most == 7 else 8, held)
        numbers = (levels - (0 if qtype == "Q8_0" else least)).astype(np.uint8)
        return in_blocks(qtype, numbers, held)
