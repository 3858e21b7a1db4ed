"""FP8: codes of 8 bits with a scale for each block, each row or the whole matrix; a number is code · scale.

As transformers' `finegrained_fp8`, compressed-tensors' `float-quantized` and ModelOpt write it. `weight_scale_inv` is a
factor, too, despite its name.
"""

from collections.abc import Mapping
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import ROUTERS, Joined, JoinedTensor, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.mx import EXPONENTS, GROUP
from localrun.formats.checkpoints.schemes import weights_of
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

CODES = ("F8_E4M3", "F8_E5M2")
_SCALE_TYPES = ("F32", "F16", "BF16", *EXPONENTS)
_SCALE_NAMES = ("weight_scale_inv", "weight_scale")
_BLOCK = (128, 128)  # rows and columns with a scale, where the config does not say


def join_fp8(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales; codes without scales are numbers.

    ModelFileError where parts do not fit.
    """
    found: Joined = {}
    for name, codes in tensors.items():
        stem = name.removesuffix("weight")
        if codes.qtype not in CODES or stem == name:
            continue
        if len(codes.shape) not in (2, 3):
            raise misfit(codes, f"of {codes.qtype} is no matrix")
        scales = next((tensors[stem + kind] for kind in _SCALE_NAMES if stem + kind in tensors), None)
        bare = "F8_E4M3" if codes.qtype == "F8_E4M3" else "BF16"
        if scales is None:
            found[name] = Fp8Codes(appears_as(name, codes.shape, bare, codes), (codes,))
        elif scales.qtype not in _SCALE_TYPES:
            raise misfit(codes, f"has scales of type {scales.qtype}")
        elif scales.shape in ((), (1,), (1, 1)) and len(codes.shape) == 2 and not name.endswith(ROUTERS):
            found[name] = Fp8Codes(appears_as(name, codes.shape, bare, codes), (codes,))
            found[stem + "scale"] = Fp8Scale(appears_as(stem + "scale", (1,), "F32", scales), (scales,))
        else:
            block = block_of(codes, scales, config)
            qtype = "F32" if name.endswith(ROUTERS) else held_type(codes, scales, block[1])
            found[name] = ScaledFp8(appears_as(name, codes.shape, qtype, codes), (codes, scales), block)
    return found


def held_type(codes: TensorInfo, scales: TensorInfo, columns: int) -> str:
    """The type that stores codes unchanged, with one scale for this many columns; else F32."""
    n_cols = codes.shape[-1]
    if codes.qtype != "F8_E4M3":
        return "F32"
    if scales.qtype in EXPONENTS and columns % 32 == n_cols % 32 == 0 and columns % 128:
        return "MXFP8"
    return "F8_G128" if columns % 128 == n_cols % 128 == 0 else "F32"


def block_of(codes: TensorInfo, scales: TensorInfo, config: Mapping[str, Any]) -> tuple[int, int]:
    """Rows and columns that share a scale: one row, or as the config says. Raises ModelFileError."""
    n_rows, n_cols = codes.shape[-2:]
    if scales.shape in ((*codes.shape[:-1], 1), codes.shape[:-1]):
        return 1, n_cols
    if scales.shape in ((), (1,), (1, 1)):
        return n_rows, n_cols
    if scales.qtype in EXPONENTS and scales.shape == (*codes.shape[:-1], n_cols // GROUP):
        return 1, GROUP
    of_groups = (weights["block_structure"] for _, weights in weights_of(config) if weights.get("block_structure"))
    said = config.get("weight_block_size") or next(of_groups, _BLOCK)
    if (
        not isinstance(said, (list, tuple))
        or len(said) != 2
        or not all(type(n) is int and 0 < n < 1 << 31 for n in said)
    ):
        raise misfit(codes, "has blocks of a size that makes no sense (weight_block_size)")
    rows, columns = said
    down, across = -(-n_rows // rows), -(-n_cols // columns)
    # ModelOpt keeps an axis of one number for the rows and the columns of a block.
    if scales.shape not in ((*codes.shape[:-2], down, across), (*codes.shape[:-2], down, 1, across, 1)):
        told = (
            f"of shape {list(codes.shape)} has scales of shape {list(scales.shape)}, for blocks of {rows} × {columns}"
        )
        raise misfit(codes, told)
    return rows, columns


class Fp8Codes(JoinedTensor):
    """Codes unchanged, or as bf16, which holds each of them exactly."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        from localrun.formats.checkpoints.small_floats import bf16_bytes

        if self.info.qtype != "BF16":
            return bytearray(read_bare(read_rows, self.parts[0], first_row, n_rows).data)
        return bf16_bytes(read_codes(read_rows, self.parts[0], first_row, n_rows))


class Fp8Scale(JoinedTensor):
    """The scale of a whole matrix."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        return bytearray(read_scales(read_rows, self.parts[0]).data)


@dataclass(frozen=True)
class ScaledFp8(JoinedTensor):
    """Codes with the scales of their blocks, or multiplied by them as f32; `block` is the rows and columns of one."""

    block: tuple[int, int]

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.parts import check_finite
        from localrun.formats.checkpoints.small_floats import f8_blocks

        codes, scales = self.parts
        n_cols, of_matrix = codes.shape[-1], codes.shape[-2]
        of_blocks = read_scales(read_rows, scales).reshape(-1, -(-n_cols // self.block[1]))
        matrix, row = np.divmod(np.arange(first_row, first_row + n_rows), of_matrix)
        blocks_down = -(-of_matrix // self.block[0])
        factors = of_blocks[matrix * blocks_down + row // self.block[0]]
        if self.info.qtype != "F32":
            bare = read_bare(read_rows, codes, first_row, n_rows)
            return f8_blocks(self.info.qtype, bare, self.spread(factors, QUANT_TYPES[self.info.qtype].block_size))
        values = read_codes(read_rows, codes, first_row, n_rows).reshape(n_rows, n_cols)
        values *= self.spread(factors, 1)
        check_finite(codes, values)
        return bytearray(values.data)

    def spread(self, factors: Any, columns: int) -> Any:
        """Scales of blocks [n, blocks], repeated for runs of `columns` columns [n, n_cols / columns]."""
        n_cols = self.info.shape[-1]
        return factors.repeat(min(self.block[1], n_cols) // columns, axis=1)[:, : n_cols // columns]


def read_bare(read_rows: ReadRows, part: TensorInfo, first_row: int, n_rows: int) -> Any:
    """Rows of E4M3 codes unchanged, flat uint8. ModelFileError for NaN."""
    from localrun.formats.checkpoints.parts import read_bytes
    from localrun.formats.checkpoints.small_floats import check_e4m3

    codes = read_bytes(read_rows, part, first_row, n_rows)
    check_e4m3(part, codes)
    return codes


def read_codes(read_rows: ReadRows, part: TensorInfo, first_row: int, n_rows: int) -> Any:
    """Rows of codes as flat f32. ModelFileError for NaN."""
    from localrun.formats.checkpoints import small_floats
    from localrun.formats.checkpoints.parts import check_finite, read_bytes

    decode = small_floats.f8_e4m3 if part.qtype == "F8_E4M3" else small_floats.f8_e5m2
    values = decode(read_bytes(read_rows, part, first_row, n_rows))
    check_finite(part, values)
    return values


def read_scales(read_rows: ReadRows, part: TensorInfo) -> Any:
    """All scales as f32. ModelFileError for NaN."""
    from localrun.formats.checkpoints.parts import check_finite, read_bytes, read_numbers
    from localrun.formats.checkpoints.small_floats import powers_of_two

    if part.qtype not in EXPONENTS:
        return read_numbers(read_rows, part)
    values = powers_of_two(read_bytes(read_rows, part))
    check_finite(part, values)
    return values
