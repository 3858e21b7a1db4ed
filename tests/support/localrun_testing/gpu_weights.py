"""Matrices in the layouts of GPUs, for the tests of kernels that read them."""

import torch
from torch import Tensor

from localrun.backends.gpu.layouts import GpuLayout
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import Packed, RowReader

from .native_ops import sample

# One type a layout.
CODES = (
    "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4", "NVFP4", "Q2_K", "Q3_K", "Q5_K",
    "IQ4_XS", "Q8_K",
)  # fmt: skip
FLOATS = ("F16", "BF16", "F32")
GRIDS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0")  # in the layout of Q8_K
# Seven tiles leave a warp without a segment of the columns, thirteen one with less than the others.
COLUMNS = {1: 100, 32: 416, 64: 320, 256: 768}
BEYOND = 3  # rows of an output that no kernel may touch


def packed(qtype: str, n_rows: int, n_cols: int, seed: int = 0) -> Packed:
    """A matrix of ordinary size."""
    raw = sample(qtype, n_rows, n_cols, seed)
    return GpuLayout().pack(RowReader(qtype, n_rows, n_cols, lambda first, n: raw[first : first + n].numpy()))


def packed_floats(matrix: Tensor) -> Packed:
    """A matrix of float32."""
    rows = matrix.view(torch.uint8).reshape(len(matrix), -1)
    return GpuLayout().pack(
        RowReader("F32", len(matrix), matrix.shape[1], lambda first, n: rows[first : first + n].numpy())
    )


def random_rows(n: int, n_cols: int, seed: int = 1) -> Tensor:
    return torch.randn(n, n_cols, generator=torch.Generator().manual_seed(seed))


def columns(qtype: str) -> int:
    """As few as have a segment that is short or missing."""
    return COLUMNS[QUANT_TYPES[qtype].block_size]
