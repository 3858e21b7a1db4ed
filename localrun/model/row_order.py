"""Row order of a weight in a file."""

import numpy as np

from localrun.model.weight_ref import WeightRef


def row_order(n_rows: int, n_heads: int, dims: int) -> np.ndarray:
    """Position of each row in a matrix whose heads pair dims (2j, 2j+1) -> int64 [n_rows].

    localrun's first half of the rotated dims are the even ones there, the second half the odd ones; the rest stay.
    """
    head_dim = n_rows // n_heads
    within = np.arange(head_dim)
    within[:dims] = np.concatenate((np.arange(0, dims, 2), np.arange(1, dims, 2)))
    return (np.arange(n_heads)[:, None] * head_dim + within).ravel()


def rows_in_file(ref: WeightRef) -> np.ndarray:
    """Position of every row of a weight in its tensor -> int64 [n_rows]."""
    n_rows, of_part = ref.shape[0], np.arange(ref.part_rows) * ref.every + ref.first_row
    rows = np.concatenate([ref.place(part)[1] + of_part for part in range(n_rows // ref.part_rows)])
    return rows if ref.interleaved is None else rows[row_order(n_rows, *ref.interleaved)]
