"""Matrices of adapters as the native library adds them: fp16, scaled to its whole range. Torch-free.

What comes of BF16 and F16 stays exact, and F32 keeps 11 bits.
"""

import numpy as np

from localrun.ops.kv import MAX_F16

ROWS = 16  # of B that lie side by side


def as_fp16(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Numbers in fp16, times the power of two that brings the largest near the end of the range; and that power."""
    most = float(np.abs(values).max())
    factor = 2.0 ** float(np.floor(np.log2(MAX_F16 / most))) if most else 1.0
    return np.ascontiguousarray(values * np.float32(factor), np.float16), factor


def b_bytes(n_out: int, rank: int) -> int:
    """Bytes of B as `by_groups` lays it out."""
    return 2 * rank * -(-n_out // ROWS) * ROWS


def by_groups(b: np.ndarray) -> np.ndarray:
    """B [n_out, rank] as [groups of rows, rank, ROWS]; rows beyond the last are zero."""
    n_out, rank = b.shape
    padded = np.zeros((b_bytes(n_out, rank) // (2 * rank), rank), np.float16)
    padded[:n_out] = b
    return padded.reshape(-1, ROWS, rank).swapaxes(1, 2)
