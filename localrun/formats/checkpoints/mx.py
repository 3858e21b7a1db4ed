"""MXFP4 matrices as compressed-tensors (`weight_packed`), Quark and ModelOpt (`weight`) have them.

Codes of E2M1, the first of a byte in its low half, and a power of two (E8M0) for 32 of them. MXFP8 is FP8 with such
scales (fp8.py).
"""

from localrun.formats.checkpoints.joined import (
    Joined,
    JoinedTensor,
    ReadRows,
    Tensors,
    appears_as,
    matrix_name,
    misfit,
)

GROUP = 32
EXPONENTS = ("F8_E8M0", "U8")  # types of scales that are powers of two
_ENDINGS = ("_packed", "")
_WHOLE = ("_global_scale", "_scale_2")  # scales of a whole matrix: NVFP4


def join_mx(tensors: Tensors) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    found: Joined = {}
    for name, codes in tensors.items():
        matrix = next(filter(None, (matrix_name(name, ending) for ending in _ENDINGS)), "")
        scales = tensors.get(f"{matrix}_scale")
        is_whole = any(matrix + kind in tensors for kind in _WHOLE)
        if codes.qtype != "U8" or not matrix or scales is None or is_whole:
            continue
        shape = (*codes.shape[:-1], codes.shape[-1] * 2) if codes.shape else ()
        if len(shape) not in (2, 3) or shape[-1] % GROUP:
            raise misfit(codes, f"of MXFP4 is no matrix with rows of a multiple of {GROUP}")
        if scales.qtype not in EXPONENTS or scales.shape != (*shape[:-1], shape[-1] // GROUP):
            raise misfit(codes, f"of MXFP4 has no powers of two for {GROUP} numbers each")
        found[matrix] = MxCodes(appears_as(matrix, shape, "MXFP4", codes), (codes, scales))
    return found


class MxCodes(JoinedTensor):
    """`parts` are codes and exponents."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        from localrun.formats.checkpoints.parts import read_bytes
        from localrun.formats.checkpoints.small_floats import fp4_blocks

        codes, exponents = (read_bytes(read_rows, part, first_row, n_rows) for part in self.parts)
        return fp4_blocks(codes, exponents)
