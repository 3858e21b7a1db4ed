"""Parts of joined tensors as arrays: raw bytes, and finite floats."""

import numpy as np

from localrun.formats.checkpoints.joined import ReadRows
from localrun.formats.files import bad_file, shown
from localrun.formats.floats import FLOATS
from localrun.formats.source import TensorInfo


def read_bytes(read_rows: ReadRows, part: TensorInfo, first_row: int = 0, n_rows: int | None = None) -> np.ndarray:
    """Rows of a tensor as flat uint8."""
    return np.frombuffer(read_rows(part, first_row, n_rows), np.uint8)


def read_numbers(read_rows: ReadRows, part: TensorInfo, first_row: int = 0, n_rows: int | None = None) -> np.ndarray:
    """Rows of a tensor of floats -> f32 [n, columns]. ModelFileError for NaN and infinity."""
    values: np.ndarray = FLOATS[part.qtype](read_bytes(read_rows, part, first_row, n_rows))
    check_finite(part, values)
    return values.reshape(-1, part.shape[-1] if part.shape else 1)


def check_finite(part: TensorInfo, values: np.ndarray) -> None:
    """Raise ModelFileError for NaN and infinity in a tensor."""
    if not np.isfinite(values).all():
        raise bad_file("NOT_FINITE", f"the tensor {shown(part.name)} is not finite", part.file, part.offset)
