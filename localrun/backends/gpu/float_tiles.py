"""Weights that stay floats: tiles of 16 rows × 64 columns, in pieces of 16 bytes of every row in turn."""

from __future__ import annotations

import torch
from torch import Tensor

from localrun.backends.gpu.tiles import padded, rows_of
from localrun.backends.gpu.weight_layouts import COLUMNS, ROWS, FloatLayout
from localrun.base.dataclass import dataclass
from localrun.formats.quant import QUANT_TYPES


@dataclass(frozen=True, slots=True)
class FloatTiles(FloatLayout):
    """One layout: of a tile first columns 0 to 7 (float32: 0 to 3) of row 0, of row 1 …, then those after them."""

    @property
    def dtype(self) -> torch.dtype:
        return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[self.name]

    @property
    def piece(self) -> int:
        """Columns in 16 bytes."""
        return 16 // self.dtype.itemsize

    def regions(self, blob: Tensor, n_rows: int, n_cols: int) -> list[Tensor]:
        """The matrix, uint8 [row tiles, bytes]."""
        return [blob.view(-(-n_rows // ROWS), -1)]

    def pack(self, qtype: str, raw: Tensor, n_cols: int) -> list[Tensor]:
        """Rows of a file, uint8 [n, row_bytes], as their part of the matrix."""
        if qtype in ("F16", "BF16"):
            values = raw.contiguous().view(self.dtype)  # the file's own bits
        else:
            values = QUANT_TYPES[qtype].decode(raw, (len(raw), n_cols)).to(self.dtype)
        rows = padded(rows_of(values, raw), COLUMNS)
        pieces = rows.view(-1, ROWS, rows.shape[1] // self.piece, self.piece).transpose(1, 2)
        return [pieces.contiguous().flatten(1).view(torch.uint8)]

    def unpack(self, blob: Tensor, n_rows: int, n_cols: int, rows: Tensor) -> Tensor:
        """The rows at `rows` (int64 [n]) as f32 [n, n_cols]."""
        (region,) = self.regions(blob, n_rows, n_cols)
        pieces = region.view(self.dtype).view(len(region), -1, ROWS, self.piece)
        return pieces[rows // ROWS, :, rows % ROWS].flatten(1)[:, :n_cols].float()
