"""Compressed-tensors: whole numbers packed in 32-bit words (`weight_packed`) or a byte each (`weight`), FP8 and NVFP4.

As its compressors of 0.20 write them (pack_quantized, naive_quantized), and files from before: those have zero points
a byte each, and `weight_g_idx` where columns were put into groups by the size of activations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import with_factor
from localrun.formats.checkpoints.groups import may_be_sorted, with_order
from localrun.formats.checkpoints.integers import SCALE_TYPES, CodedRows, IntegerCodes, held_type, level_type
from localrun.formats.checkpoints.joined import Joined, ReadRows, Tensors, appears_as, matrix_name, misfit
from localrun.formats.checkpoints.nvfp4 import join_nvfp4
from localrun.formats.checkpoints.schemes import Scheme, scheme_of, schemes_of
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Beside:
    """The tensors beside the codes of a matrix."""

    scales: TensorInfo
    zeros: TensorInfo | None
    shape: TensorInfo | None
    groups: TensorInfo | None

    @property
    def present(self) -> tuple[TensorInfo, ...]:
        return tuple(part for part in (self.scales, self.zeros, self.shape, self.groups) if part)


def join_compressed(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    found = join_nvfp4(tensors, config)
    schemes = schemes_of(config)
    for name, codes in tensors.items():
        if codes.qtype == "I32" and (matrix := matrix_name(name, "_packed")):
            beside = tensors_beside(tensors, matrix, codes)
            scheme = scheme_of(matrix.removesuffix(".weight"), codes, beside.scales, schemes)
            check_zeros(codes, beside, [scheme])
            columns = scheme.columns(codes, beside.scales)
            found |= matrix_of(matrix, codes, beside, columns, scheme.group or columns, scheme.bits, scheme.is_ordered)
        elif codes.qtype == "I8" and (matrix := matrix_name(name, "")):
            beside = tensors_beside(tensors, matrix, codes)
            check_zeros(codes, beside, schemes)
            n_groups = beside.scales.shape[-1] if len(beside.scales.shape) > 1 else 1
            if len(codes.shape) not in (2, 3) or codes.shape[-1] % n_groups:
                raise misfit(codes, "is no matrix of as many groups as there are scales")
            found |= matrix_of(matrix, codes, beside, codes.shape[-1], codes.shape[-1] // n_groups)
    return found


def tensors_beside(tensors: Tensors, matrix: str, codes: TensorInfo) -> Beside:
    """The tensors beside the codes. Raises ModelFileError where there are no scales."""
    scales = tensors.get(f"{matrix}_scale")
    if scales is None or scales.qtype not in SCALE_TYPES:
        raise misfit(codes, "has no scales, or of a type that scales cannot have")
    return Beside(scales, *(tensors.get(f"{matrix}_{kind}") for kind in ("zero_point", "shape", "g_idx")))


def check_zeros(codes: TensorInfo, beside: Beside, schemes: Sequence[Scheme]) -> None:
    """Raise ModelFileError where zero points are missing that all schemes which it may have say there are."""
    if beside.zeros is None and schemes and all(scheme.has_zeros for scheme in schemes):
        raise misfit(codes, "has no zero points, and its config says that zero is not in the middle (symmetric)")


def matrix_of(
    name: str, codes: TensorInfo, beside: Beside, columns: int, group: int, bits: int = 8, is_ordered: bool = False
) -> Joined:
    """A matrix, once the tensors beside it agree. Raises ModelFileError."""
    shape = *codes.shape[:-1], columns
    check_beside(codes, shape, group, beside, bits)
    is_ordered = is_ordered and beside.groups is not None and group < columns
    held = held_type(name, columns, group, beside.scales.qtype, bits, symmetric=beside.zeros is None)
    if is_ordered and not may_be_sorted(name):
        held = "F32"
    info = appears_as(name, shape, held, codes)
    matrix = CompressedCodes(info, (codes, *beside.present), group, beside, bits, is_ordered)
    found = with_factor(matrix, beside.scales)
    if is_ordered and beside.groups is not None and held != "F32":
        found |= with_order(name, beside.groups, columns // group, group)
    return found


def check_beside(codes: TensorInfo, shape: tuple[int, ...], group: int, beside: Beside, bits: int) -> None:
    """Raise ModelFileError for tensors beside the codes with a wrong shape or type."""
    of_groups = (*shape[:-1], shape[-1] // group)
    whole = ((), (1,), shape[:-1]) if group == shape[-1] else ()
    if beside.scales.shape not in (of_groups, *whole):
        told = f"of shape {list(shape)} in groups of {group:,} has scales of shape {list(beside.scales.shape)}"
        raise misfit(codes, told)
    if (zeros := beside.zeros) is not None:
        in_words = (-(-shape[0] * bits // 32), of_groups[-1])
        fits = {"I8": zeros.shape in (of_groups, *whole), "I32": zeros.shape == in_words and codes.qtype == "I32"}
        if not fits.get(zeros.qtype) or len(shape) != 2:
            raise misfit(codes, f"has zero points of type {zeros.qtype} and shape {list(zeros.shape)}")
    if (said := beside.shape) and (said.qtype not in ("I64", "I32") or said.shape not in ((2,), (len(shape),))):
        raise misfit(codes, "has a weight_shape that is no shape of a matrix")
    if beside.groups is not None and (beside.groups.qtype, beside.groups.shape) != ("I32", shape[-1:]):
        raise misfit(codes, "has a weight_g_idx that does not name a group for each column")


@dataclass(frozen=True)
class CompressedCodes(IntegerCodes):
    """Signed codes, a byte each; or codes of `bits` in 32-bit words, offset by half of their range."""

    beside: Beside
    bits: int
    is_ordered: bool

    def rows(self, read_rows: ReadRows, first_row: int, n_rows: int) -> CodedRows:
        import numpy as np

        from localrun.formats.checkpoints.codes import unpack_words
        from localrun.formats.checkpoints.parts import read_bytes

        self.check_told(read_rows)
        raw = read_bytes(read_rows, self.parts[0], first_row, n_rows)
        if self.parts[0].qtype == "I8":
            codes: np.ndarray = raw.view(np.int8).reshape(n_rows, -1).astype(level_type(self.bits))
        else:
            words = raw.view("<u4").reshape(n_rows, -1)
            codes = unpack_words(words, self.bits, self.info.shape[-1]).astype(level_type(self.bits)) - self._half
        scales = self.scales(read_rows, first_row, n_rows)
        if self.beside.zeros is None:
            return CodedRows(codes, None, scales)
        zeros = self.zero_points(read_rows, self.beside.zeros)[first_row : first_row + n_rows]
        return CodedRows(codes + self._half, zeros + self._half, scales)

    @property
    def _half(self) -> int:
        return 1 << (self.bits - 1)

    def zero_points(self, read_rows: ReadRows, part: TensorInfo) -> np.ndarray:
        """Zero points of all rows. -> int8, for 8 bits int16 [rows, groups]"""
        import numpy as np

        from localrun.formats.checkpoints.codes import unpack_words
        from localrun.formats.checkpoints.parts import read_bytes

        n_rows, raw = self.info.shape[0], read_bytes(read_rows, part)
        if part.qtype == "I8":
            each = raw.view(np.int8).astype(level_type(self.bits))
            if each.min() < -self._half or each.max() >= self._half:
                raise misfit(part, f"has zero points that no code of {self.bits} bits has")
            return np.broadcast_to(each.reshape(-1, each.size // n_rows or 1), (n_rows, max(1, each.size // n_rows)))
        turned = raw.view("<u4").reshape(part.shape).T  # they are packed along the rows of the matrix
        return unpack_words(turned, self.bits, n_rows).T.astype(level_type(self.bits)) - self._half

    def scales(self, read_rows: ReadRows, first_row: int, n_rows: int) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        part = self.beside.scales
        if len(part.shape) == len(self.info.shape):
            return read_numbers(read_rows, part, first_row, n_rows)
        values = read_numbers(read_rows, part).reshape(-1, 1)
        return values.repeat(n_rows, axis=0) if len(values) == 1 else values[first_row : first_row + n_rows]

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        from localrun.formats.checkpoints.parts import read_numbers

        return read_numbers(read_rows, self.beside.scales).ravel()

    def groups(self, read_rows: ReadRows) -> np.ndarray | None:
        from localrun.formats.checkpoints.groups import read_groups

        if (part := self.beside.groups) is None:
            return None
        return read_groups(read_rows, part, self.info.shape[-1] // self.group, self.group, self.is_ordered)

    def sorted_columns(self, groups: np.ndarray) -> np.ndarray:
        from localrun.formats.checkpoints.groups import sorted_columns

        assert self.beside.groups is not None, "it names the groups"
        return sorted_columns(self.beside.groups, groups, self.group)

    def check_told(self, read_rows: ReadRows) -> None:
        """Raise ModelFileError for a stored shape or column order that contradicts the tensors."""
        from localrun.formats.checkpoints.parts import read_bytes

        self.groups(read_rows)
        if (part := self.beside.shape) is not None:
            told = read_bytes(read_rows, part).view("<i8" if part.qtype == "I64" else "<i4").tolist()
            if told != list(self.info.shape[-len(told) :]):
                raise misfit(self.parts[0], f"has the shape {told} by its weight_shape, and is none of that")
