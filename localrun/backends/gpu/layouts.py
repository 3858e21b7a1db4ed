"""Weights in the GPU's layouts: packed slab by slab, on the device that they are for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple
from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.float_tiles import FloatTiles
from localrun.backends.gpu.tiles import CodeTiles
from localrun.backends.gpu.weight_layouts import ROWS, CodeLayout, layout_of
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import F32, Packed, RowReader, on_device

Tiles: TypeAlias = CodeTiles | FloatTiles


@cache
def tiles_of(qtype: str) -> Tiles:
    """The packer of the layout that holds a quant type."""
    layout = layout_of(qtype)
    return CodeTiles(*astuple(layout)) if isinstance(layout, CodeLayout) else FloatTiles(*astuple(layout))


class GpuLayout:
    """The GPU's layouts, one for every quant type; repacking runs where the rows are wanted, or near."""

    name = "gpu"
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
            raw = on_device(rows.read(first, min(step, rows.n_rows - first)), self.packs_on(rows.device))
            for region, part in zip(regions, tiles.pack(rows.qtype, raw, rows.n_cols), strict=True):
                region[first // ROWS :][: len(part)] = part
        return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (blob,))

    def packs_on(self, device: torch.device | None) -> torch.device | None:
        """Where rows for `device` are repacked."""
        return device

    def vector(self, values: np.ndarray, device: torch.device | None) -> Tensor:
        return on_device(values, device)

    def low_rank_bytes(self, n_out: int, n_in: int, rank: int) -> int:
        return F32.low_rank_bytes(n_out, n_in, rank)

    def low_rank(self, a: np.ndarray, b: np.ndarray, device: torch.device | None) -> tuple[Packed, Packed, float]:
        return F32.low_rank(a, b, device)

    def unpack(self, packed: Packed, rows: slice | Tensor) -> Tensor:
        (blob,) = packed.planes
        if isinstance(rows, slice):
            rows = torch.arange(packed.n_rows, device=blob.device)[rows]
        return tiles_of(packed.qtype).unpack(blob, packed.n_rows, packed.n_cols, rows)


class MetalLayout(GpuLayout):
    """The GPU's layouts, packed by the processor: both have the same memory, so a matrix lies there once.

    Beside it there is never more than a slab of its rows, as the file has them and packed.
    """

    def packs_on(self, device: torch.device | None) -> torch.device:
        return torch.device("cpu")
