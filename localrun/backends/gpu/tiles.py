"""Quantised weights as the tensor cores read them: tiles of 16 rows × 64 columns, without a byte to spare.

Lane 4g + t of a warp owns rows g and g + 8 and of every run of 16 columns the four from 4t on: eight words of four
codes, word 2i + h for run i and row g + 8h. Codes are cut into planes of bits; a plane of B bits keeps field n % (8/B)
of word n · B/8 for word n, so a lane finds its part of a tile in 4B bytes on end. Kernels read the same in layouts.cuh.
"""

from __future__ import annotations

import torch
from torch import Tensor

from localrun.backends.gpu.file_blocks import UNPACKERS, FileBlocks
from localrun.backends.gpu.weight_layouts import COLUMNS, ROWS, CodeLayout, CodeTable, ScaleForm
from localrun.base.dataclass import dataclass
from localrun.formats.decode_table import FP4_VALUES, IQ4_VALUES
from localrun.formats.quant import QUANT_TYPES

SUPER_COLUMNS = 256  # that share a super-scale


@dataclass(frozen=True, slots=True)
class CodeTiles(CodeLayout):
    """One layout, packed and unpacked by torch where its tensors are."""

    def regions(self, blob: Tensor, n_rows: int, n_cols: int) -> list[Tensor]:
        """The parts of a matrix, each uint8 [row tiles, bytes]."""
        n_tiles = -(-n_cols // COLUMNS)
        sizes = [blob.numel() // sum(self.region_bytes()) * size for size in self.region_bytes()]
        return [
            part.view(-1, n_tiles * size) for part, size in zip(blob.split(sizes), self.region_bytes(), strict=True)
        ]

    def pack(self, qtype: str, raw: Tensor, n_cols: int) -> list[Tensor]:
        """Rows of a file, uint8 [n, row_bytes], as their part of every region."""
        row = QUANT_TYPES[qtype]
        blocks = UNPACKERS[qtype](raw.reshape(-1, row.block_bytes))
        parts = [plane.flatten(1) for plane in self.code_planes(padded(rows_of(blocks.codes, raw), COLUMNS))]
        parts.append(self.scale_records(blocks, raw).flatten(1))
        if blocks.supers is not None:
            parts.append(by_row_pairs(rows_of(blocks.supers, raw), blocks.supers.shape[1]).flatten(1))
        return parts

    def code_planes(self, codes: Tensor) -> list[Tensor]:
        """uint8 [16 · row tiles, 64 · tiles] -> for every plane [row tiles, tiles, …]"""
        codes = codes - self.zero  # the bits beyond a code's are dropped below
        words = codes.view(-1, 2, 8, codes.shape[1] // COLUMNS, 4, 4, 4).permute(
            0, 3, 2, 5, 4, 1, 6
        )  # …, g, t, i, h, j
        if self.table is not CodeTable.NONE:
            pairs = words.reshape(*words.shape[:4], 16, 2)
            return [pairs[..., 0] | pairs[..., 1] << 4]
        found, shift = [], 0
        for bits in self.planes:
            fields = (words >> shift & (1 << bits) - 1).reshape(*words.shape[:4], bits, 8 // bits, 4)
            plane = torch.zeros_like(fields[..., 0, :])
            for field in range(8 // bits):
                plane |= fields[..., field, :] << bits * field
            # 8 bits: the first 16 bytes of all lanes, then the others, so that both loads are without gaps
            found.append(plane.unflatten(4, (-1, min(bits, 4))).movedim(4, 2))
            shift += bits
        return found

    def scale_records(self, blocks: FileBlocks, raw: Tensor) -> Tensor:
        """[row tiles, tiles, g, bytes]: of every group the scales of rows g and g + 8, then likewise the minima."""
        n_groups = COLUMNS // self.group
        parts = [blocks.scales, *([] if blocks.minima is None else [blocks.minima])]
        return torch.cat([by_row_pairs(padded(rows_of(part, raw), n_groups), n_groups) for part in parts], -1)

    def unpack(self, blob: Tensor, n_rows: int, n_cols: int, rows: Tensor) -> Tensor:
        """The rows at `rows` (int64 [n]) as f32 [n, n_cols]: the file's numbers."""
        regions = self.regions(blob, n_rows, n_cols)
        *planes, scales = regions[: len(self.planes) + 1]
        values: Tensor = self.unpack_codes(planes, rows).unflatten(1, (-1, self.group))
        scale, minimum = self.unpack_scales(scales, regions[-1], rows)
        values *= scale.unsqueeze(2)
        if minimum is not None:
            values += minimum.unsqueeze(2)
        return values.flatten(1)[:, :n_cols]

    def unpack_codes(self, planes: list[Tensor], rows: Tensor) -> Tensor:
        """Values of the codes, f32 [n, 64 · tiles]."""
        tile, pair, half = rows // ROWS, rows % 8, rows % ROWS // 8
        words: Tensor | int = 0
        shift = 0
        for bits, plane in zip(self.planes, planes, strict=True):
            lanes = plane.view(len(plane), -1, bits // min(bits, 4), 8, 4, min(bits, 4), 4)[tile, :, :, pair]
            lanes = lanes.movedim(2, 3).flatten(3, 4)  # [n, tiles, t, words, bytes]
            if self.table is not CodeTable.NONE:
                fields = torch.stack((lanes & 15, lanes >> 4), -1).view(*lanes.shape[:3], 4, 2, 4)
            else:
                shifts = lanes.new_tensor(range(0, 8, bits)).view(-1, 1)
                fields = lanes.unsqueeze(4) >> shifts & (1 << bits) - 1
            words = fields.reshape(*lanes.shape[:3], 4, 2, 4) << shift | words
            shift += bits
        assert isinstance(words, Tensor)
        codes = words.permute(0, 1, 3, 2, 5, 4)[torch.arange(len(rows), device=rows.device), ..., half].flatten(1)
        if self.table is not CodeTable.NONE:
            values = IQ4_VALUES if self.table is CodeTable.IQ4 else FP4_VALUES
            return torch.tensor(values, dtype=torch.float32, device=codes.device)[codes.long()]
        sign = 1 << self.bits - 1 if self.signed else 0
        return (codes ^ sign).float() - sign

    def unpack_scales(self, scales: Tensor, supers: Tensor, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scales and minima, f32 [n, groups]."""
        n_groups, dtype = COLUMNS // self.group, torch.float16 if self.scale.bytes == 2 else torch.uint8
        parts = of_row(scales, dtype, (1 + self.scale.has_minima, n_groups), rows).movedim(2, 0).flatten(2)
        if self.scale is ScaleForm.E8M0:
            powers = torch.tensor([2.0 ** (exponent - 128) for exponent in range(256)], device=rows.device)
            return powers[parts[0].long()], None
        if self.scale is ScaleForm.SUPER_I8:
            factor = of_row(supers, torch.float32, (1,), rows)[..., 0]
            return parts[0].view(torch.int8).float() * factor.repeat_interleave(SUPER_COLUMNS // self.group, 1), None
        if self.scale is ScaleForm.SUPER_MIN:
            factors = of_row(supers, torch.float16, (2,), rows).float().movedim(2, 0)
            found = parts.float() * factors.repeat_interleave(SUPER_COLUMNS // self.group, 2)
            return found[0], -found[1]
        return parts[0].float(), parts[1].float() if self.scale.has_minima else None


def rows_of(parts: Tensor, raw: Tensor) -> Tensor:
    """Blocks side by side in their rows, and rows of zeros up to a whole tile. [blocks, k] -> [16 · row tiles, …]"""
    rows = parts.reshape(len(raw), -1)
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(raw) % ROWS))


def padded(rows: Tensor, multiple: int) -> Tensor:
    """Zeros up to a multiple of columns."""
    return torch.nn.functional.pad(rows, (0, -rows.shape[1] % multiple))


def by_row_pairs(rows: Tensor, n: int) -> Tensor:
    """[16 · row tiles, n · tiles] -> bytes [row tiles, tiles, g, …], where rows g and g + 8 stand side by side."""
    pairs = rows.view(-1, 2, 8, rows.shape[1] // n, n).permute(0, 3, 2, 4, 1).contiguous()
    return pairs.flatten(3).view(torch.uint8)


def of_row(region: Tensor, dtype: torch.dtype, shape: tuple[int, ...], rows: Tensor) -> Tensor:
    """Unpack rows that `by_row_pairs` packed. uint8 [row tiles, bytes] -> [n, tiles, *shape]"""
    pairs = region.view(dtype).view(len(region), -1, 8, *shape, 2)[rows // ROWS, :, rows % 8]
    return pairs[torch.arange(len(rows), device=rows.device), ..., rows % ROWS // 8]
