"""Every way a tensor's numbers are stored in a file: one row a type.

A type packs `block_size` neighbours of a row into `block_bytes` bytes. A new row is readable everywhere from then on,
through `decode` (the definition of what its bits mean); fast kernels are a separate matter. Torch is imported by the
first decode, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, UsageError
from localrun.formats import decode_affine, decode_iq, decode_k, decode_legacy, decode_plain, decode_table

if TYPE_CHECKING:
    import torch

_CHUNK = 1 << 20  # elements decoded at a time: the temporaries of a decoder stay small


@dataclass(frozen=True, slots=True)
class QuantType:
    """One row. `decode_blocks` is the meaning of the bits: uint8 [n, block_bytes] -> float32 [n, block_size]."""

    name: str
    gguf_id: int | None  # None: no GGUF has it
    block_size: int
    block_bytes: int
    decode_blocks: Callable[[torch.Tensor], torch.Tensor]
    encodes: bool = False
    own_id: int | None = None  # where no GGUF has it, but the native library a layout: repack.cpp there

    @property
    def number(self) -> int | None:
        """Number of the type in the native library; None: it knows no such type."""
        return self.gguf_id if self.own_id is None else self.own_id

    @property
    def bits(self) -> float:
        """Bits a weight, scales included."""
        return self.block_bytes * 8 / self.block_size

    def nbytes(self, shape: Sequence[int]) -> int:
        """Size in bytes of a tensor of this shape; its rows have to be made of whole blocks."""
        if shape and shape[-1] % self.block_size:
            raise UsageError(f"{self.name} needs rows of a multiple of {self.block_size}, not of {shape[-1]}")
        return prod(shape) // self.block_size * self.block_bytes

    def decode(self, raw: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """The numbers in `raw` (uint8, any shape, any device) as a float32 tensor of `shape` on the same device."""
        import torch

        if raw.dtype != torch.uint8 or raw.numel() != self.nbytes(shape):
            message = f"{raw.numel():,} bytes of {raw.dtype} are no {self.name} tensor of shape {tuple(shape)}"
            raise ModelFileError("TRUNCATED", message)
        blocks = raw.reshape(-1, self.block_bytes)
        values = torch.empty(blocks.shape[0], self.block_size, dtype=torch.float32, device=raw.device)
        step = _CHUNK // self.block_size
        for start in range(0, blocks.shape[0], step):
            values[start : start + step] = self.decode_blocks(blocks[start : start + step])
        return values.reshape(tuple(shape))

    def encode(self, weights: torch.Tensor) -> torch.Tensor:
        """`weights` in this type as flat uint8 on the CPU, rounded as the gguf package does. Needs `encodes`."""
        import torch

        if not self.encodes:
            raise UsageError(f"{self.name} can be read but not written", "choose Q8_0, Q4_0 or F16")
        self.nbytes(weights.shape)
        from gguf import GGMLQuantizationType, quants

        array = weights.detach().to("cpu", torch.float32).contiguous().numpy()
        return torch.from_numpy(quants.quantize(array, GGMLQuantizationType[self.name])).view(torch.uint8).flatten()


_ROWS = (
    # name, GGUF id, elements and bytes of a block, decoder, whether it can be encoded
    QuantType("F32", 0, 1, 4, decode_plain.f32, True),
    QuantType("F16", 1, 1, 2, decode_plain.f16, True),
    QuantType("BF16", 30, 1, 2, decode_plain.bf16, True),
    QuantType("F64", 28, 1, 8, decode_plain.f64),
    QuantType("I8", 24, 1, 1, decode_plain.i8),
    QuantType("U8", None, 1, 1, decode_plain.u8),
    QuantType("U16", None, 1, 2, decode_plain.u16),
    QuantType("U32", None, 1, 4, decode_plain.u32),
    QuantType("BOOL", None, 1, 1, decode_plain.u8),
    QuantType("F8_E4M3", None, 1, 1, decode_plain.f8_e4m3, own_id=1008),
    QuantType("F8_E5M2", None, 1, 1, decode_plain.f8_e5m2),
    QuantType("F8_E8M0", None, 1, 1, decode_plain.f8_e8m0),
    QuantType("I16", 25, 1, 2, decode_plain.i16),
    QuantType("I32", 26, 1, 4, decode_plain.i32),
    QuantType("I64", 27, 1, 8, decode_plain.i64),
    QuantType("Q1_0", 41, 128, 18, decode_legacy.q1_0),
    QuantType("Q2_0", 42, 64, 18, decode_legacy.q2_0),
    QuantType("Q4_0", 2, 32, 18, decode_legacy.q4_0, True),
    QuantType("Q4_1", 3, 32, 20, decode_legacy.q4_1, True),
    QuantType("Q5_0", 6, 32, 22, decode_legacy.q5_0, True),
    QuantType("Q5_1", 7, 32, 24, decode_legacy.q5_1, True),
    QuantType("Q8_0", 8, 32, 34, decode_legacy.q8_0, True),
    QuantType("Q2_K", 10, 256, 84, decode_k.q2_k),
    QuantType("Q3_K", 11, 256, 110, decode_k.q3_k),
    QuantType("Q4_K", 12, 256, 144, decode_k.q4_k),
    QuantType("Q5_K", 13, 256, 176, decode_k.q5_k),
    QuantType("Q6_K", 14, 256, 210, decode_k.q6_k),
    QuantType("Q8_K", 15, 256, 292, decode_k.q8_k),
    QuantType("IQ2_XXS", 16, 256, 66, decode_iq.iq2_xxs),
    QuantType("IQ2_XS", 17, 256, 74, decode_iq.iq2_xs),
    QuantType("IQ2_S", 22, 256, 82, decode_iq.iq2_s),
    QuantType("IQ3_XXS", 18, 256, 98, decode_iq.iq3_xxs),
    QuantType("IQ3_S", 21, 256, 110, decode_iq.iq3_s),
    QuantType("IQ1_S", 19, 256, 50, decode_iq.iq1_s),
    QuantType("IQ1_M", 29, 256, 56, decode_iq.iq1_m),
    QuantType("IQ4_NL", 20, 32, 18, decode_table.iq4_nl),
    QuantType("IQ4_XS", 23, 256, 136, decode_table.iq4_xs),
    QuantType("MXFP4", 39, 32, 17, decode_table.mxfp4, True),
    QuantType("NVFP4", 40, 64, 36, decode_table.nvfp4),
    QuantType("TQ1_0", 34, 256, 54, decode_table.tq1_0, True),
    QuantType("TQ2_0", 35, 256, 66, decode_table.tq2_0, True),
    QuantType("INT2_G64", None, 64, 20, decode_affine.affine(2), own_id=1001),
    QuantType("INT4_G64", None, 64, 36, decode_affine.affine(4), own_id=1002),
    QuantType("INT5_G64", None, 64, 44, decode_affine.affine(5), own_id=1003),
    QuantType("INT6_G32", None, 32, 28, decode_affine.affine(6), own_id=1004),
    QuantType("INT6_G64", None, 64, 52, decode_affine.affine(6), own_id=1005),
    QuantType("INT8_G32", None, 32, 36, decode_affine.affine(8), own_id=1006),
    QuantType("INT8_G64", None, 64, 68, decode_affine.affine(8), own_id=1007),
    QuantType("F8_G128", None, 128, 132, decode_table.f8_g128, own_id=1009),
    QuantType("MXFP8", None, 32, 33, decode_table.mxfp8, own_id=1010),
    QuantType("INT4_ZP_G32", None, 32, 19, decode_affine.zero_point(4), own_id=1011),
    QuantType("INT4_ZP_G128", None, 128, 67, decode_affine.zero_point(4), own_id=1012),
    QuantType("INT8_ZP_G32", None, 32, 35, decode_affine.zero_point(8), own_id=1013),
    QuantType("NF4_G64", None, 64, 36, decode_table.nf4_g64, own_id=1014),
    QuantType("INT4_F32_G32", None, 32, 24, decode_affine.affine(4, wide=True), own_id=1015),
    QuantType("INT8_F32_G32", None, 32, 40, decode_affine.affine(8, wide=True), own_id=1016),
    QuantType("INT4_SYM_F32_G32", None, 32, 20, decode_affine.symmetric(4), own_id=1017),
    QuantType("INT4_SYM_F32_G128", None, 128, 68, decode_affine.symmetric(4), own_id=1018),
    QuantType("INT8_SYM_F32_G32", None, 32, 36, decode_affine.symmetric(8), own_id=1019),
    QuantType("INT8_SYM_F32_G128", None, 128, 132, decode_affine.symmetric(8), own_id=1020),
    QuantType("INT4_ZP_F32_G32", None, 32, 21, decode_affine.zero_point(4, wide=True), own_id=1021),
    QuantType("INT8_ZP_F32_G32", None, 32, 37, decode_affine.zero_point(8, wide=True), own_id=1022),
)
QUANT_TYPES: dict[str, QuantType] = {row.name: row for row in _ROWS}
BY_GGUF_ID: dict[int, QuantType] = {row.gguf_id: row for row in _ROWS if row.gguf_id is not None}
