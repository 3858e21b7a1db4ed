"""Blocks of threads of the attention kernels on each platform, and the macros they are compiled with. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from localrun.backends.gpu.layer_cache import codec_defines
from localrun.backends.gpu.scratch import UNIT_TOKENS
from localrun.ops.kv import KVCodec

F32 = 32  # bits of plain numbers
KEYS, COLUMNS, PART = 64, 8, 128  # of attention.cuh, and UNIT_TOKENS
MAX_TILE_HEAD_DIM = 256  # beyond these registers do not hold what a tile of CUDA sums up


class AttentionBlocks(Protocol):
    """The attention of a platform, for heads of `head_dim` numbers whose keys and values are kept in `codec`.

    finishes: a text of one unit needs no merge. merge_ends: attend_merge turns heads back, where keys and values are
    turned, and quantises them. rope_knows_dim: rope_append is compiled for heads of one size.
    """

    finishes: bool
    merge_ends: bool
    rope_knows_dim: bool

    def units_file(self, codec: KVCodec) -> str:
        """The stem of the file with attend_units."""
        ...

    def has_tiles(self, head_dim: int, codec: KVCodec) -> bool: ...
    def columns(self, head_dim: int) -> int:
        """Queries that a warp takes through the keys together."""
        ...

    def tile_warps(self, head_dim: int, shared_bytes: int) -> tuple[str, int]:
        """Macro and number of the warps of a tile: as many as shared memory has room for."""
        ...

    def units_bytes(self, head_dim: int, codec: KVCodec) -> int:
        """Bytes of dynamic shared memory of attend_units."""
        ...

    def tiles_bytes(self, head_dim: int, n_warps: int) -> int:
        """Bytes of dynamic shared memory of attend_tiles."""
        ...

    def defines(self, head_dim: int, codec: KVCodec) -> dict[str, int]:
        """Macros of attend_units, attend_merge and attend_tiles."""
        ...


class CudaBlocks:
    """Tensor cores take 8 queries and 64 keys at a time; attention_f32.cu computes what stays floats."""

    finishes = rope_knows_dim = False
    merge_ends = True

    def units_file(self, codec: KVCodec) -> str:
        return "attention_f32" if codec.k_bits == F32 else "attention"

    def has_tiles(self, head_dim: int, codec: KVCodec) -> bool:
        return head_dim <= MAX_TILE_HEAD_DIM and codec.k_bits != F32

    def columns(self, head_dim: int) -> int:
        return COLUMNS

    def tile_warps(self, head_dim: int, shared_bytes: int) -> tuple[str, int]:
        return "N_WARPS", next(n for n in (8, 4, 2, 1) if self.tiles_bytes(head_dim, n) <= shared_bytes)

    def units_bytes(self, head_dim: int, codec: KVCodec) -> int:
        """Bytes of Shared in attention.cu, or attention_f32.cu."""
        n_warps = UNIT_TOKENS // KEYS
        if codec.k_bits == F32:
            return 4 * COLUMNS * (2 * head_dim + n_warps * (KEYS + 32 + 2))
        of_warp = max(2 * COLUMNS * (KEYS + 8) * 2, COLUMNS * (min(head_dim, PART) + 4) * 4)
        return 2 * query_bytes(head_dim) + n_warps * (of_warp + 2 * COLUMNS * 4)

    def tiles_bytes(self, head_dim: int, n_warps: int) -> int:
        """Bytes of Shared in attention_tiles.cu."""
        part = min(head_dim, PART)
        key_stride, value_stride = part + (48 - part // 2 % 32) % 32 * 2, part + 8
        weights = 2 * COLUMNS * (KEYS + 8) * 2
        return n_warps * (query_bytes(head_dim) + weights) + 2 * KEYS * max(key_stride, value_stride) * 2

    def defines(self, head_dim: int, codec: KVCodec) -> dict[str, int]:
        return {"DIM": head_dim} | ({} if codec.k_bits == F32 else codec_defines(codec))


def query_bytes(head_dim: int) -> int:
    """Bytes of Query in attention.cuh."""
    return head_dim // 16 * 32 * 16 + COLUMNS * 4


class MetalBlocks:
    """Simdgroups keep everything in f32; kernels declare their threadgroup memory themselves."""

    finishes = rope_knows_dim = True
    merge_ends = False

    def units_file(self, codec: KVCodec) -> str:
        return "attention"

    def has_tiles(self, head_dim: int, codec: KVCodec) -> bool:
        return True

    def columns(self, head_dim: int) -> int:
        """COLUMNS of attention_block.metal."""
        return 4 if head_dim > 128 else 8

    def tile_warps(self, head_dim: int, shared_bytes: int) -> tuple[str, int]:
        return "N_SIMDGROUPS", 2 if head_dim > 256 else 4

    def units_bytes(self, head_dim: int, codec: KVCodec) -> int:
        return 0

    def tiles_bytes(self, head_dim: int, n_warps: int) -> int:
        return 0

    def defines(self, head_dim: int, codec: KVCodec) -> dict[str, int]:
        return {"DIM": head_dim} | codec_defines(codec)


CUDA, METAL = CudaBlocks(), MetalBlocks()
BLOCKS: Mapping[str, AttentionBlocks] = {".cu": CUDA, ".metal": METAL}  # by the suffix of kernel files
