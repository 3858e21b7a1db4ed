"""Which lane of a warp holds which number of a matrix, as CUTLASS publishes it (cute/atom/mma_traits_sm80.hpp).

A layout is ((shape of threads), (shape of values)) and the strides beside it, offsets into a column-major matrix: an
oracle that shares nothing with our kernels or the emulator.
"""

from typing import TypeAlias

import numpy as np

Modes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def layout(shape: Modes, stride: Modes) -> np.ndarray:
    """Offsets [32 lanes, values]; the first mode of each runs fastest."""

    def offsets(sizes: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        found = np.zeros(1, np.int64)
        for size, step in zip(sizes, strides, strict=True):
            found = (found[None, :] + (np.arange(size) * step)[:, None]).reshape(-1)
        return found

    threads, values = offsets(shape[0], stride[0]), offsets(shape[1], stride[1])
    held: np.ndarray = threads[:, None] + values
    return held


def split(matrix: np.ndarray, held: np.ndarray) -> np.ndarray:
    """What each lane holds of a matrix, [32, values]."""
    return np.ascontiguousarray(matrix.reshape(-1, order="F")[held])


S8_A = layout(((4, 8), (4, 2, 2)), ((64, 1), (16, 8, 256)))  # 16 × 32
S8_B = layout(((4, 8), (4, 2)), ((32, 1), (8, 128)))  # 8 × 32
S8_K16_A = layout(((4, 8), (4, 2)), ((64, 1), (16, 8)))  # 16 × 16
S8_K16_B = layout(((4, 8), (4,)), ((32, 1), (8,)))  # 8 × 16
F16_A = layout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))  # 16 × 16
F16_B = layout(((4, 8), (2, 2)), ((16, 1), (8, 64)))  # 8 × 16
SUMS = layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))  # 16 × 8
