"""How weight matrices lie in a GPU's memory. A layout is a row of the table below, which packing and kernels both read.

The decomposition of every quant type is that of kernels/cpu/layouts/layouts.h.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from localrun.backends.cuda.float_tiles import FloatTiles
from localrun.backends.cuda.tiles import ROWS, CodeTiles, Scale, Table
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import Packed, RowReader, on_device

Tiles: TypeAlias = CodeTiles | FloatTiles

F32 = FloatTiles("f32", torch.float32)  # whatever is a plain number, too
I8_K = CodeTiles("i8_k", (8,), Scale.SUPER_I8, group=16)  # a signed byte times a small integer a group times a float

TILES: dict[str, Tiles] = {
    "F16": FloatTiles("f16", torch.float16),
    "BF16": FloatTiles("bf16", torch.bfloat16),
    "Q4_0": CodeTiles("q4_0", (4,), Scale.FP16, zero=8),
    "Q4_1": CodeTiles("q4_1", (4,), Scale.FP16_MIN),
    "Q5_0": CodeTiles("q5_0", (4, 1), Scale.FP16, zero=16),
    "Q5_1": CodeTiles("q5_1", (4, 1), Scale.FP16_MIN),
    "Q8_0": CodeTiles("q8_0", (8,), Scale.FP16),
    "IQ4_NL": CodeTiles("iq4_nl", (4,), Scale.FP16, table=Table.IQ4),
    "MXFP4": CodeTiles("mxfp4", (4,), Scale.E8M0, table=Table.FP4),
    "NVFP4": CodeTiles("nvfp4", (4,), Scale.FP16, group=16, table=Table.FP4),
    "Q2_K": CodeTiles("q2_k", (2,), Scale.SUPER_MIN, group=16),
    "Q3_K": CodeTiles("q3_k", (2, 1), Scale.SUPER_I8, group=16, zero=4),
    "Q4_K": CodeTiles("q4_k", (4,), Scale.SUPER_MIN),
    "Q5_K": CodeTiles("q5_k", (4, 1), Scale.SUPER_MIN),
    "Q6_K": CodeTiles("q6_k", (4, 2), Scale.SUPER_I8, group=16, zero=32),
    "IQ4_XS": CodeTiles("iq4_xs", (4,), Scale.SUPER_I8, table=Table.IQ4),
    **dict.fromkeys(("Q8_K", "TQ1_0", "TQ2_0", "IQ1_S", "IQ1_M"), I8_K),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"), I8_K),
}
LAYOUTS: tuple[Tiles, ...] = tuple({tiles.name: tiles for tiles in (F32, *TILES.values())}.values())


def tiles_of(qtype: str) -> Tiles:
    """The layout that holds a quant type."""
    return TILES.get(qtype, F32)


class CudaLayout:
    """The GPU's layouts, one for every quant type; repacking runs where the rows are wanted."""

    name = "cuda"
    reads_side_by_side = False

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        QUANT_TYPES[qtype].nbytes((n_rows, n_cols))  # refuses rows that are not made of whole blocks
        return tiles_of(qtype).nbytes(n_rows, n_cols)

    def packing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def pack(self, rows: RowReader) -> Packed:
        tiles = tiles_of(rows.qtype)
        n_bytes = self.nbytes(rows.qtype, rows.n_rows, rows.n_cols)
        blob = torch.empty(n_bytes, dtype=torch.uint8, device=rows.device)
        regions = tiles.regions(blob, rows.n_rows, rows.n_cols)
        step = rows.slab_rows(multiple=ROWS)
        for first in range(0, rows.n_rows, step):
            raw = on_device(rows.read(first, min(step, rows.n_rows - first)), rows.device)
            for region, part in zip(regions, tiles.pack(rows.qtype, raw, rows.n_cols), strict=True):
                region[first // ROWS :][: len(part)] = part
        return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (blob,))

    def vector(self, values: np.ndarray, device: torch.device | None) -> Tensor:
        return on_device(values, device)

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        (blob,) = packed.planes
        if isinstance(rows, slice):
            rows = torch.arange(packed.n_rows, device=blob.device)[rows]
        return tiles_of(packed.qtype).unpack(blob, packed.n_rows, packed.n_cols, rows)
