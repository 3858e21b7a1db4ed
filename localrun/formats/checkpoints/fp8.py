"""FP8: codes of 8 bits with a scale for each block, each row or the whole matrix; a number is code · scale.

As transformers' `finegrained_fp8`, compressed-tensors' `float-quantized` and ModelOpt write it. `weight_scale_inv` is a
factor, too, despite its name; GPTQModel alone divides by it, and says so (`weight_scale_semantics`). Experts in one
tensor are [n, rows, columns], or [n, columns, rows] as in Qwen3-VL.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from math import prod
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import (
    ROUTERS,
    Joined,
    JoinedTensor,
    ReadRows,
    Tensors,
    appears_as,
    matrix_name,
    misfit,
)
from localrun.formats.checkpoints.mx import EXPONENTS, GROUP
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.checkpoints.schemes import weights_of
from localrun.formats.checkpoints.whole_scale import WholeScale, read_scales
from localrun.formats.files import shown
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo, factor_name

CODES = ("F8_E4M3", "F8_E5M2")
_SCALE_TYPES = ("F32", "F16", "BF16", *EXPONENTS)  # U8 for 32 columns only
_SCALE_ENDINGS = ("_scale", "_scale_inv")  # of two the last one counts
_ONE = ((), (1,), (1, 1))  # shapes of a scale of the whole
_BLOCK = (128, 128)  # rows and columns with a scale, where the config does not say


def join_fp8(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales; codes without scales are numbers.

    ModelFileError where parts do not fit.
    """
    found: Joined = {}
    read_once, divides = ReadOnce(), config.get("weight_scale_semantics") == "inverse"
    matrices = {name: codes for name, codes in tensors.items() if codes.qtype in CODES and matrix_name(name, "")}
    scales_of = {name: tensors[name + end] for name in matrices for end in _SCALE_ENDINGS if name + end in tensors}
    for name, codes in matrices.items():
        if len(codes.shape) not in (2, 3):
            raise misfit(codes, f"of {codes.qtype} is no matrix")
        scales, shape = scales_of.get(name), codes.shape
        bare = "F8_E4M3" if codes.qtype == "F8_E4M3" else "BF16"
        if scales is None:
            if scales_of:
                raise misfit(codes, f"of {codes.qtype} has no scales, as {shown(min(scales_of))} has")
            found[name] = Fp8Codes(appears_as(name, shape, bare, codes), (codes,))
        elif scales.qtype not in _SCALE_TYPES or (scales.qtype == "U8" and not are_of_32(codes, scales)):
            raise misfit(codes, f"has scales of type {scales.qtype}")
        elif is_one(scales, config) and len(shape) == 2 and not name.endswith(ROUTERS):
            found[name] = Fp8Codes(appears_as(name, shape, bare, codes), (codes,))
            factor = factor_name(name)
            found[factor] = WholeScale(appears_as(factor, (1,), "F32", scales), (scales,), divides)
        else:
            block, turned = block_of(codes, scales, config), are_turned(name, tensors)
            if turned:
                block, shape = block[::-1], (shape[0], shape[2], shape[1])
            qtype = "F32" if name.endswith(ROUTERS) else held_type(codes, scales, block[1], shape[-1])
            found[name] = ScaledFp8(
                appears_as(name, shape, qtype, codes), (codes, scales), block, divides, turned, read_once
            )
    return found


def is_one(scales: TensorInfo, config: Mapping[str, Any]) -> bool:
    """Whether it is one scale of a whole matrix, in a checkpoint that does not say that all are of blocks."""
    return scales.shape in _ONE and not config.get("weight_block_size")


def are_of_32(codes: TensorInfo, scales: TensorInfo) -> bool:
    """Whether each scale is for 32 columns of a row, as those of MXFP8 are."""
    return scales.shape == (*codes.shape[:-1], codes.shape[-1] // GROUP)


def are_turned(name: str, tensors: Tensors) -> bool:
    """Whether experts in one tensor are [n, columns, rows]: only the shapes of both tell."""
    gate_up, down = (tensors.get(f"{name.rpartition('.')[0]}.{part}_proj") for part in ("gate_up", "down"))
    if name.endswith("weight") or gate_up is None or down is None:
        return False
    return len(gate_up.shape) == len(down.shape) == 3 and gate_up.shape[2] == 2 * down.shape[1]


def held_type(codes: TensorInfo, scales: TensorInfo, columns: int, n_cols: int) -> str:
    """The type that stores codes unchanged, with one scale for this many columns; else F32."""
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
    of_each = codes.shape[:-2], (*codes.shape[:-2], 1, 1)  # of several experts
    if is_one(scales, config) or (len(codes.shape) == 3 and scales.shape in of_each):
        return n_rows, n_cols
    if scales.qtype in EXPONENTS and are_of_32(codes, scales):
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
        from localrun.formats.checkpoints.parts import read_bytes
        from localrun.formats.checkpoints.small_floats import bf16_bytes

        raw = read_bytes(read_rows, self.parts[0], first_row, n_rows)
        if self.info.qtype != "BF16":
            return bytearray(checked(self.parts[0], raw).data)
        return bf16_bytes(numbers_of(self.parts[0], raw))


@dataclass(frozen=True)
class ScaledFp8(JoinedTensor):
    """Codes with the scales of their blocks, or multiplied by them as f32; `block` is the rows and columns of one.

    `divides`: the scales in the file are divisors. `turned`: both parts are [n, columns, rows] in the file.
    """

    block: tuple[int, int]
    divides: bool
    turned: bool
    read_once: ReadOnce = field(compare=False, repr=False)

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.parts import check_finite
        from localrun.formats.checkpoints.small_floats import f8_blocks

        codes, (of_matrix, n_cols) = self.parts[0], self.info.shape[-2:]
        raw = self.codes(read_rows, first_row, n_rows)
        matrix, row = np.divmod(np.arange(first_row, first_row + n_rows), of_matrix)
        n_all = prod(self.info.shape[:-1])
        scales = self.read_once.get((self.info.name, "scales"), n_all, n_rows, lambda: self.block_scales(read_rows))
        factors = scales[matrix, row // self.block[0]]
        if self.info.qtype != "F32":
            spread = self.spread(factors, QUANT_TYPES[self.info.qtype].block_size)
            return f8_blocks(self.info.qtype, checked(codes, raw), spread)
        values = numbers_of(codes, raw).reshape(n_rows, n_cols)
        with np.errstate(over="ignore"):  # infinity is refused
            values *= self.spread(factors, 1)
        check_finite(codes, values)
        return bytearray(values.data)

    def codes(self, read_rows: ReadRows, first_row: int, n_rows: int) -> Any:
        """Rows of codes, flat uint8. Matrices that are turned are read whole."""
        import numpy as np

        from localrun.formats.checkpoints.parts import read_bytes

        if not self.turned:
            return read_bytes(read_rows, self.parts[0], first_row, n_rows)
        of_matrix, found = self.info.shape[-2], []
        while n_rows:
            number, row = divmod(first_row, of_matrix)
            count = min(n_rows, of_matrix - row)
            read = partial(self.turned_matrix, read_rows, number)
            found.append(self.read_once.get((self.info.name, number), of_matrix, count, read)[row : row + count])
            first_row, n_rows = first_row + count, n_rows - count
        return np.concatenate(found).ravel()

    def turned_matrix(self, read_rows: ReadRows, number: int) -> Any:
        """Codes of one matrix that is [columns, rows] in the file, uint8 [rows, columns]."""
        from localrun.formats.checkpoints.parts import read_bytes
        from localrun.formats.checkpoints.turned import turn

        n_rows, n_cols = self.info.shape[-2:]
        return turn(read_bytes(read_rows, self.parts[0], number * n_cols, n_cols).reshape(n_cols, n_rows))

    def block_scales(self, read_rows: ReadRows) -> Any:
        """Scales of all matrices. -> f32 [matrices, blocks down, blocks across]"""
        import numpy as np

        sizes = [-(-size // of_block) for size, of_block in zip(self.info.shape[-2:], self.block, strict=True)]
        n_matrices = prod(self.info.shape[:-2])
        scales = read_scales(read_rows, self.parts[1], self.divides).ravel()
        if len(scales) == 1:  # of all experts
            return np.broadcast_to(scales, (n_matrices, *sizes))
        in_file = scales.reshape(n_matrices, *(sizes[::-1] if self.turned else sizes))
        return in_file.swapaxes(1, 2) if self.turned else in_file

    def spread(self, factors: Any, columns: int) -> Any:
        """Scales of blocks [n, blocks], repeated for runs of `columns` columns [n, n_cols / columns]."""
        n_cols = self.info.shape[-1]
        return factors.repeat(min(self.block[1], n_cols) // columns, axis=1)[:, : n_cols // columns]


def checked(part: TensorInfo, codes: Any) -> Any:
    """E4M3 codes of a part, unchanged. ModelFileError for NaN."""
    from localrun.formats.checkpoints.small_floats import check_e4m3

    check_e4m3(part, codes)
    return codes


def numbers_of(part: TensorInfo, codes: Any) -> Any:
    """Codes of a part as flat f32. ModelFileError for NaN."""
    from localrun.formats.checkpoints import small_floats
    from localrun.formats.checkpoints.parts import check_finite

    decode = small_floats.f8_e4m3 if part.qtype == "F8_E4M3" else small_floats.f8_e5m2
    values = decode(codes)
    check_finite(part, values)
    return values
