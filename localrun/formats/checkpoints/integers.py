"""Integer matrices: a code minus its zero point, times a scale shared by a group of neighbours."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localrun.formats.checkpoints.fp16_scales import ScaledCodes
from localrun.formats.checkpoints.joined import ROUTERS, ReadRows, misfit

if TYPE_CHECKING:
    import numpy as np

SCALE_TYPES = ("F32", "F16", "BF16")
_BLOCK = 32
_LEVELS = {"Q4_0": (-8, 7), "Q5_0": (-16, 15), "Q8_0": (-128, 127)}  # the least and the greatest number of each type


def reach(bits: int, symmetric: bool) -> tuple[int, int]:
    """Range of codes minus zero points: for zero points in the middle, or any."""
    half, all_codes = 1 << (bits - 1), (1 << bits) - 1
    return (-half, half - 1) if symmetric else (-all_codes, all_codes)


def level_type(bits: int) -> type[np.int8] | type[np.int16]:
    """The smallest type that holds codes minus zero points."""
    import numpy as np

    return np.int8 if bits < 8 else np.int16


def held_type(name: str, columns: int, group: int, scales: str, levels: tuple[int, int]) -> str:
    """The GGUF type that holds the same numbers, by their range; F32 where none does, and for routers.

    `scales` is the type of the scales.
    """
    if group % _BLOCK or columns % _BLOCK or scales == "F32" or name.endswith(ROUTERS):
        return "F32"
    fits = (qtype for qtype, (least, most) in _LEVELS.items() if least <= levels[0] and levels[1] <= most)
    return next(fits, "F32")


@dataclass(frozen=True)
class IntegerCodes(ScaledCodes):
    """Codes, the first of `parts`, with a scale and a zero point for each `group` columns of a row."""

    group: int

    @abstractmethod
    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes minus zero points, int8 or int16 [n_rows, columns], and scales, f32 [n_rows, groups]."""

    def of_columns(self, of_groups: np.ndarray, read_rows: ReadRows) -> np.ndarray:
        """Repeat the numbers of groups for each of their columns. [n, groups] -> [n, columns]"""
        n_cols = self.info.shape[-1]
        return of_groups.repeat(min(self.group, n_cols), axis=1)[:, :n_cols]

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.codes import in_blocks

        levels, scales = self.rows(read_rows, first_row, n_rows)
        qtype = self.info.qtype
        if qtype == "F32":
            with np.errstate(over="ignore"):  # numbers that are none are refused with their row
                numbers = levels * self.of_columns(scales, read_rows)
            return bytearray(np.ascontiguousarray(numbers, "<f4").data)
        least, most = _LEVELS[qtype]
        if levels.min() < least or levels.max() > most:
            raise misfit(self.parts[0], "has zero points that its config rules out")
        codes = (levels - (0 if qtype == "Q8_0" else least)).astype(np.uint8)
        return in_blocks(qtype, codes, self.in_fp16(read_rows, scales, self.group))
