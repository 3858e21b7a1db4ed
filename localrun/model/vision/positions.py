"""Positions of patches: order, rows of the learned table between its own, and angles of a 2-D rope."""

import numpy as np

from localrun.ops.interface import Angles

PatchPlaces = tuple[np.ndarray, np.ndarray]  # line and column of every patch, int64 [n_patches]


def places_by_square(lines: int, columns: int, merge: int) -> PatchPlaces:
    """Lines and columns of `lines` × `columns` patches, those of each square of merge · merge together."""
    grid = np.arange(lines * columns).reshape(lines // merge, merge, columns // merge, merge)
    return np.divmod(grid.transpose(0, 2, 1, 3).ravel(), columns)


def learned_positions(table: np.ndarray, lines: int, columns: int, places: PatchPlaces) -> np.ndarray:
    """Rows for patches at `places`, between those of a square table [side · side, n], bilinear -> f32 [n_patches, n].

    Corners of the image have the rows of the table's corners (align_corners).
    """
    side = round(len(table) ** 0.5)
    (top, down), (left, right) = (near_rows(place, n, side) for place, n in zip(places, (lines, columns), strict=True))
    found = np.zeros((len(places[0]), table.shape[1]), np.float32)
    for line, of_line in ((top, 1 - down), (np.minimum(top + 1, side - 1), down)):
        for column, of_column in ((left, 1 - right), (np.minimum(left + 1, side - 1), right)):
            found += table[line * side + column] * (of_line * of_column)[:, None]
    return found


def near_rows(place: np.ndarray, n: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of `side` at or before each place of n, and how far it is on to the next."""
    at = place.astype(np.float32) * np.float32((side - 1) / max(n - 1, 1))
    row = np.minimum(np.floor(at), side - 1).astype(np.int64)
    return row, at - row.astype(np.float32)


def axial_angles(places: PatchPlaces, head_dim: int, theta: float) -> Angles:
    """cos and sin of the pairs (j, j + head_dim / 2) of a head: the first half turns by the line, the others by the
    column -> f32 [n_patches, head_dim / 2] each."""
    quarter = head_dim // 4
    frequencies = theta ** (-np.arange(quarter, dtype=np.float64) / quarter)
    angles = np.concatenate([place[:, None] * frequencies for place in places], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
