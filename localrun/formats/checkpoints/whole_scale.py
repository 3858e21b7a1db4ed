"""Scales of FP8 and NVFP4 as factors, and the one of a whole matrix, by which its products are multiplied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import JoinedTensor, ReadRows
from localrun.formats.checkpoints.mx import EXPONENTS
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class WholeScale(JoinedTensor):
    """The scale of a whole matrix, or those of several; `divides`: the file has divisors."""

    divides: bool

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        factors = read_scales(read_rows, self.parts[0], self.divides)
        of_each = np.broadcast_to(factors.ravel(), self.info.shape)
        return bytearray(np.ascontiguousarray(of_each, "<f4").data)


def read_scales(read_rows: ReadRows, part: TensorInfo, divides: bool) -> np.ndarray:
    """All scales of a tensor as factors, f32. ModelFileError for NaN and infinity."""
    import numpy as np

    from localrun.formats.checkpoints.parts import check_finite, read_bytes, read_numbers
    from localrun.formats.checkpoints.small_floats import powers_of_two

    is_power = part.qtype in EXPONENTS
    scales = powers_of_two(read_bytes(read_rows, part)) if is_power else read_numbers(read_rows, part)
    with np.errstate(divide="ignore", over="ignore"):  # infinity is refused
        factors: np.ndarray = 1 / scales if divides else scales
    check_finite(part, factors)
    return factors
