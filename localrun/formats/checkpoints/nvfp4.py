"""NVFP4: 4-bit codes (E2M1), an E4M3 scale for 16 of them, and one scale for the whole matrix.

compressed-tensors divides by that scale (`weight_global_scale`), ModelOpt multiplies by it (`weight_scale_2`); here it
is a factor of the matrix's products. Other matrices of such a checkpoint may be FP8 or MXFP4.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from localrun.formats.checkpoints.fp8 import join_fp8
from localrun.formats.checkpoints.joined import (
    Joined,
    JoinedTensor,
    ReadRows,
    Tensors,
    appears_as,
    matrix_name,
    misfit,
)
from localrun.formats.checkpoints.mx import join_mx
from localrun.formats.checkpoints.whole_scale import WholeScale
from localrun.formats.source import TensorInfo, factor_name

_SPELLINGS = (("_packed", "_global_scale"), ("", "_scale_2"))  # endings of codes, and of their scale of the whole
_GROUP = 16
_BLOCK = 64  # numbers of a block of that type


def join_nvfp4(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales, and those in FP8 and MXFP4. ModelFileError where parts do not fit."""
    found: Joined = {}
    for name, codes in tensors.items():
        for ending, kind in _SPELLINGS:
            matrix = matrix_name(name, ending)
            if codes.qtype != "U8" or not matrix or matrix + kind not in tensors:
                continue
            scales, whole = tensors.get(f"{matrix}_scale"), tensors[matrix + kind]
            shape = checked_shape(codes, scales, whole)
            assert scales is not None
            held = "F32" if shape[-1] % _BLOCK else "NVFP4"
            found[matrix] = Nvfp4Codes(appears_as(matrix, shape, held, codes), (codes, scales))
            factor = factor_name(matrix)
            of_each = shape[:1] if len(shape) == 3 else (1,)
            found[factor] = WholeScale(appears_as(factor, of_each, "F32", whole), (whole,), divides=bool(ending))
    return join_fp8(tensors, config) | join_mx(tensors) | found


def checked_shape(codes: TensorInfo, scales: TensorInfo | None, whole: TensorInfo) -> tuple[int, ...]:
    """The shape of the matrix, once its parts agree. Raises ModelFileError."""
    if len(codes.shape) not in (2, 3) or codes.shape[-1] * 2 % _GROUP:
        raise misfit(codes, f"of NVFP4 is no matrix with rows of a multiple of {_GROUP}")
    shape = *codes.shape[:-1], codes.shape[-1] * 2
    if scales is None or scales.qtype != "F8_E4M3" or scales.shape != (*shape[:-1], shape[-1] // _GROUP):
        raise misfit(codes, f"of NVFP4 has no E4M3 scales for {_GROUP} numbers each")
    of_each = len(shape) == 3 and whole.shape[:1] == shape[:1] and prod(whole.shape) == shape[0]  # of all experts
    if whole.qtype != "F32" or not (of_each or prod(whole.shape) == 1):
        raise misfit(codes, f"of NVFP4 has scales of the whole of type {whole.qtype} and shape {list(whole.shape)}")
    return shape


class Nvfp4Codes(JoinedTensor):
    """Codes and E4M3 scales as GGUF blocks, or as f32 where rows are not whole blocks."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        from localrun.formats.checkpoints.parts import read_bytes
        from localrun.formats.checkpoints.small_floats import check_e4m3_scales, fp4_rows_of_16

        codes, scales = (read_bytes(read_rows, part, first_row, n_rows) for part in self.parts)
        check_e4m3_scales(self.parts[1], scales)
        return fp4_rows_of_16(self.info.qtype, codes, scales)
