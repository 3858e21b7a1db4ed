"""Layouts of weight matrices in a GPU's memory, each a row of the table below, which packing and kernels both read.

The decomposition of every quant type is that of kernels/cpu/layouts/layouts.h. Torch-free: `fit` asks for bytes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from localrun.base.dataclass import dataclass

ROWS, COLUMNS = 16, 64  # of a tile


class ScaleForm(IntEnum):
    """Scales of a group of columns: a factor, and a summand. The numbers are those of layouts.cuh."""

    FP16 = 0
    FP16_MIN = 1  # and one that is added
    E8M0 = 2  # a power of two: 2^(byte - 128)
    SUPER_I8 = 3  # int8 times a float32 of 256 columns
    SUPER_MIN = 4  # uint8 times an fp16 of 256 columns, and the same again for what is subtracted

    @property
    def bytes(self) -> int:
        return 2 if self in (ScaleForm.FP16, ScaleForm.FP16_MIN) else 1

    @property
    def has_minima(self) -> bool:
        return self in (ScaleForm.FP16_MIN, ScaleForm.SUPER_MIN)

    @property
    def has_supers(self) -> bool:
        return self in (ScaleForm.SUPER_I8, ScaleForm.SUPER_MIN)


class CodeTable(IntEnum):
    """Tables of the numbers that codes stand for, numbered as in layouts.cuh."""

    NONE = 0
    IQ4 = 1
    FP4 = 2


@dataclass(frozen=True, slots=True)
class CodeLayout:
    """One layout. A matrix is its regions one after the other: code planes, scales, super-scales.

    Codes that stand for both signs are kept in two's complement. With a table the two nibbles of a byte are neighbours
    of a row, not rows g and g + 8: byte selection looks four of them up at once.
    """

    name: str
    planes: tuple[int, ...]  # bits, lowest first
    scale: ScaleForm
    group: int = 32  # columns of a scale
    zero: int = 0  # the file's code that stands for 0
    table: CodeTable = CodeTable.NONE

    @property
    def bits(self) -> int:
        return sum(self.planes)

    @property
    def signed(self) -> bool:
        return self.zero > 0 or self.bits == 8

    @property
    def defines(self) -> dict[str, int]:
        """Macros of the kernels that read it."""
        low, high = (*self.planes, 0)[:2]
        return {
            "LOW_BITS": low, "HIGH_BITS": high, "SIGNED_CODES": int(self.signed), "SCALE": int(self.scale),
            "GROUP": self.group, "TABLE": int(self.table),
        }  # fmt: skip

    def region_bytes(self) -> list[int]:
        """Bytes of a tile in each region; super-scales of 256 columns are shared by four tiles."""
        scales = COLUMNS // self.group * ROWS * self.scale.bytes * (1 + self.scale.has_minima)
        return [*(128 * bits for bits in self.planes), scales, *[16] * self.scale.has_supers]

    def nbytes(self, n_rows: int, n_cols: int) -> int:
        return -(-n_rows // ROWS) * -(-n_cols // COLUMNS) * sum(self.region_bytes())


@dataclass(frozen=True, slots=True)
class FloatLayout:
    """Weights that stay floats, with `bits` bits each."""

    name: str
    bits: int

    @property
    def defines(self) -> dict[str, int]:
        """Macros of the kernels that read it."""
        return {"FLOAT_BITS": self.bits, "IS_BF16": int(self.name == "bf16")}

    def nbytes(self, n_rows: int, n_cols: int) -> int:
        return -(-n_rows // ROWS) * ROWS * (-(-n_cols // COLUMNS) * COLUMNS) * self.bits // 8


WeightLayout: TypeAlias = CodeLayout | FloatLayout

Q4_1 = CodeLayout("q4_1", (4,), ScaleForm.FP16_MIN)
Q5_0 = CodeLayout("q5_0", (4, 1), ScaleForm.FP16, zero=16)
Q5_1 = CodeLayout("q5_1", (4, 1), ScaleForm.FP16_MIN)
BF16 = FloatLayout("bf16", 16)
F32 = FloatLayout("f32", 32)  # whatever is a plain number, too
I8_K = CodeLayout(
    "i8_k", (8,), ScaleForm.SUPER_I8, group=16
)  # a signed byte times a small integer a group times a float

BY_TYPE: dict[str, WeightLayout] = {
    "F16": FloatLayout("f16", 16),
    "BF16": BF16,
    **dict.fromkeys(("F8_E4M3", "MXFP8"), BF16),  # to the bit, but for subnormals
    "NF4_G64": BF16,  # rounded, as bitsandbytes does
    "Q4_0": CodeLayout("q4_0", (4,), ScaleForm.FP16, zero=8),
    "Q4_1": Q4_1,
    **dict.fromkeys(("Q5_0", "INT4_ZP_G32", "INT4_ZP_G128"), Q5_0),  # code less zero point: -16 to 15
    "Q5_1": Q5_1,
    "Q8_0": CodeLayout("q8_0", (8,), ScaleForm.FP16),
    "IQ4_NL": CodeLayout("iq4_nl", (4,), ScaleForm.FP16, table=CodeTable.IQ4),
    "MXFP4": CodeLayout("mxfp4", (4,), ScaleForm.E8M0, table=CodeTable.FP4),
    "NVFP4": CodeLayout("nvfp4", (4,), ScaleForm.FP16, group=16, table=CodeTable.FP4),
    "Q2_K": CodeLayout("q2_k", (2,), ScaleForm.SUPER_MIN, group=16),
    "Q3_K": CodeLayout("q3_k", (2, 1), ScaleForm.SUPER_I8, group=16, zero=4),
    "Q4_K": CodeLayout("q4_k", (4,), ScaleForm.SUPER_MIN),
    "Q5_K": CodeLayout("q5_k", (4, 1), ScaleForm.SUPER_MIN),
    "Q6_K": CodeLayout("q6_k", (4, 2), ScaleForm.SUPER_I8, group=16, zero=32),
    "IQ4_XS": CodeLayout("iq4_xs", (4,), ScaleForm.SUPER_I8, table=CodeTable.IQ4),
    "INT2_G64": Q4_1,
    "INT4_G64": Q4_1,
    "INT5_G64": Q5_1,
    **dict.fromkeys(("Q8_K", "TQ1_0", "TQ2_0", "IQ1_S", "IQ1_M"), I8_K),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"), I8_K),
}
LAYOUTS: tuple[WeightLayout, ...] = tuple({layout.name: layout for layout in (F32, *BY_TYPE.values())}.values())
# Pairs of layouts that recipes give queries, keys and values of a layer: their matrices share a launch.
MIXED = (
    *(("q2_k", other) for other in ("q3_k", "q4_k")),
    *(("q3_k", other) for other in ("q4_k", "q5_k")),
    *(("q4_k", other) for other in ("q5_k", "q6_k", "q8_0")),
    *(("q5_k", other) for other in ("q6_k", "q8_0")),
    *((other, "q5_k") for other in ("iq4_nl", "iq4_xs")),
)


def mixed_defines(first: WeightLayout, second: WeightLayout) -> dict[str, int]:
    """Macros of kernels that read two layouts."""
    return first.defines | {f"{name}_2": value for name, value in second.defines.items()}


def layout_of(qtype: str) -> WeightLayout:
    """The layout that holds a quant type."""
    return BY_TYPE.get(qtype, F32)
