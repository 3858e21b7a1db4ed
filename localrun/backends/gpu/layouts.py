"""Weights in the GPU's layouts: packed slab by slab, on the device that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.float_tiles import FloatTiles
from localrun.backends.gpu.slabs import SlabCopies, cuda_copies, slab_bytes
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

    def __init__(self) -> None:
        self.copies: SlabCopies | None = None  # while a model is loaded for an NVIDIA GPU

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        QUANT_TYPES[qtype].nbytes((n_rows, n_cols))  # refuses rows that are not made of whole blocks
        return tiles_of(qtype).nbytes(n_rows, n_cols)

    @contextmanager
    def packing(self) -> Iterator[None]:
        """Give back at the end what packing took of a GPU's memory: the cache has not been made yet."""
        try:
            yield
        finally:
            if self.copies is not None:
                self.copies = None
                torch.cuda.empty_cache()

    def pack(self, rows: RowReader) -> Packed:
        tiles = tiles_of(rows.qtype)
        n_bytes = self.nbytes(rows.qtype, rows.n_rows, rows.n_cols)
        blob = torch.empty(n_bytes, dtype=torch.uint8, device=rows.device)
        regions = tiles.regions(blob, rows.n_rows, rows.n_cols)
        where = self.packs_on(rows.device)
        step = rows.slab_rows(ROWS, slab_bytes(where))
        for first in range(0, rows.n_rows, step):
            raw = self.sent(rows.read(first, min(step, rows.n_rows - first)), where)
            for region, part in zip(regions, tiles.pack(rows.qtype, raw, rows.n_cols), strict=True):
                region[first // ROWS :][: len(part)] = part
        return Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (blob,))

    def packs_on(self, device: torch.device | None) -> torch.device | None:
        """Where rows for `device` are repacked."""
        return device

    def sent(self, slab: np.ndarray, where: torch.device | None) -> Tensor:
        """Rows of a file, uint8 [n, bytes], where they are packed."""
        if where is None or where.type != "cuda":
            return on_device(slab, where)
        self.copies = self.copies or cuda_copies(where)
        return self.copies.send(slab)

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
