"""MLX: rows of codes in 32-bit words, and a scale per group; affine ones also have a bias per group.

As mlx 0.32 writes them (mlx/ops.cpp `quantize`) and mlx-lm names them: `weight`, `scales`, `biases`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.fp16_scales import ScaledCodes, with_factor
from localrun.formats.checkpoints.joined import (
    HINT,
    ROUTERS,
    Joined,
    JoinedTensor,
    ReadRows,
    Tensors,
    appears_as,
    misfit,
)
from localrun.formats.files import bad_file, shown
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_BITS = {"affine": (1, 2, 3, 4, 5, 6, 8), "mxfp4": (4,), "nvfp4": (4,), "mxfp8": (8,)}
_USUAL = {"affine": (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}  # group size and bits
# Types of codes of so many bits with an fp16 scale and minimum for 32 or 64 of them: of a GGUF where it has one.
_OF_32 = {1: "Q4_1", 2: "Q4_1", 3: "Q4_1", 4: "Q4_1", 5: "Q5_1", 6: "INT6_G32", 8: "INT8_G32"}
_OF_64 = {1: "INT2_G64", 2: "INT2_G64", 3: "INT4_G64", 4: "INT4_G64", 5: "INT5_G64", 6: "INT6_G64", 8: "INT8_G64"}


@dataclass(frozen=True, slots=True)
class Packing:
    """How one matrix is packed."""

    mode: str
    group: int  # numbers with a scale
    bits: int


def join_mlx(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    found: Joined = {}
    for name, codes in tensors.items():
        stem = name.removesuffix("weight")
        scales = tensors.get(stem + "scales")
        if codes.qtype != "U32" or scales is None or stem == name:
            continue
        biases = tensors.get(stem + "biases") or tensors.get(stem + "qbiases")  # as transformers calls them
        packing = packing_of(stem.removesuffix("."), config, codes, scales)
        shape = checked_shape(codes, scales, biases, packing)
        if packing.mode != "affine":
            held = {"mxfp4": "MXFP4", "nvfp4": "NVFP4" if shape[-1] % 64 == 0 else "F32", "mxfp8": "MXFP8"}
            info = appears_as(name, shape, held[packing.mode], codes)
            found[name] = FloatCodes(info, (codes, scales), packing)
            continue
        assert biases is not None
        qtype = affine_type(name, packing, scales)
        matrix = AffineCodes(appears_as(name, shape, qtype, codes), (codes, scales, biases), packing)
        found |= with_factor(matrix, scales)
    return found


def packing_of(path: str, config: Mapping[str, Any], codes: TensorInfo, scales: TensorInfo) -> Packing:
    """Packing of this matrix by the config: its own, of which nothing is the common one's, or the common one."""
    plain = _plain(path)
    values = next((value for key, value in config.items() if isinstance(value, dict) and _plain(key) == plain), config)
    mode = values.get("mode") or "affine"
    if not isinstance(mode, str) or mode not in _BITS:
        raise bad_file("UNSUPPORTED", f"MLX's mode {shown(str(mode))} is not known", codes.file, codes.offset, HINT)
    group, bits = (values.get(key, usual) for key, usual in zip(("group_size", "bits"), _USUAL[mode], strict=True))
    if type(bits) is not int or bits not in _BITS[mode]:
        raise misfit(codes, f"cannot be of {shown(str(bits))} bits in MLX's mode {mode}")
    if type(group) is not int or not 1 <= group <= 1 << 16 or (mode != "affine" and group != _USUAL[mode][0]):
        raise misfit(codes, f"cannot have groups of {shown(str(group))} in MLX's mode {mode}")
    return Packing(mode, group, bits)


def checked_shape(
    codes: TensorInfo, scales: TensorInfo, biases: TensorInfo | None, packing: Packing
) -> tuple[int, ...]:
    """The shape of the matrix, once its parts agree. Raises ModelFileError."""
    shape = (*codes.shape[:-1], codes.shape[-1] * 32 // packing.bits) if codes.shape else ()
    if len(shape) not in (2, 3) or codes.shape[-1] * 32 % packing.bits or shape[-1] % packing.group:
        raise misfit(codes, f"is no matrix of {packing.bits} bits in groups of {packing.group}")
    if scales.shape != (*shape[:-1], shape[-1] // packing.group):
        told = f"of {packing.bits} bits in groups of {packing.group} has scales of shape {list(scales.shape)}"
        raise misfit(codes, told)
    if packing.mode != "affine":
        if scales.qtype != "U8" or biases is not None:
            raise misfit(
                codes, f"has scales of type {scales.qtype}, or biases, which MLX's mode {packing.mode} has not"
            )
        return shape
    if biases is None or biases.shape != scales.shape or biases.qtype != scales.qtype:
        raise misfit(codes, "has biases unlike its scales, or none")
    if scales.qtype not in ("F32", "F16", "BF16"):
        raise misfit(codes, f"has scales of type {scales.qtype}")
    return shape


def affine_type(name: str, packing: Packing, scales: TensorInfo) -> str:
    """The type that holds the same numbers in the fewest bits."""
    if packing.group % 32 or name.endswith(ROUTERS):
        return "F32"
    if scales.qtype == "F32":
        return "INT4_F32_G32" if packing.bits <= 4 else "INT8_F32_G32"
    return (_OF_32 if packing.group % 64 else _OF_64)[packing.bits]


@dataclass(frozen=True)
class AffineCodes(ScaledCodes):
    """A matrix whose numbers are code · scale + bias; `parts` are codes, scales and biases."""

    packing: Packing

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.codes import affine_blocks, in_blocks, packed, unpack
        from localrun.formats.checkpoints.parts import read_bytes, read_numbers

        raw = read_bytes(read_rows, self.parts[0], first_row, n_rows).reshape(n_rows, -1)
        scales, biases = (read_numbers(read_rows, part, first_row, n_rows) for part in self.parts[1:])
        if self.info.qtype == "F32":
            groups = unpack(raw, self.packing.bits).reshape(n_rows, -1, self.packing.group).astype(np.float32)
            groups *= scales[..., None]
            groups += biases[..., None]
            return bytearray(groups.data)
        held = (self.held_scales(read_rows, part, self.packing.group) for part in (scales, biases))
        if not self.info.qtype.startswith("INT"):
            return in_blocks(self.info.qtype, unpack(raw, self.packing.bits), *held)
        bits = int(self.info.qtype[3])  # INT4_G64 has codes of 4
        if bits != self.packing.bits:
            raw = packed(unpack(raw, self.packing.bits), bits)
        return affine_blocks(raw, *held)

    def all_scales(self, read_rows: ReadRows) -> np.ndarray:
        import numpy as np

        from localrun.formats.checkpoints.parts import read_numbers

        return np.concatenate([read_numbers(read_rows, part).ravel() for part in self.parts[1:]])


@dataclass(frozen=True)
class FloatCodes(JoinedTensor):
    """A matrix whose codes are floats of 4 or 8 bits; `parts` are codes and scales of one byte."""

    packing: Packing

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        from localrun.formats.checkpoints import small_floats
        from localrun.formats.checkpoints.parts import check_finite, read_bytes

        codes, scales = (read_bytes(read_rows, part, first_row, n_rows) for part in self.parts)
        if self.packing.mode == "mxfp4":
            return small_floats.fp4_blocks(codes, scales)
        if self.packing.mode == "nvfp4":
            small_floats.check_e4m3_scales(self.parts[1], scales)
            return small_floats.fp4_rows_of_16(self.info.qtype, codes, scales)
        small_floats.check_e4m3(self.parts[0], codes)
        powers = small_floats.powers_of_two(scales)
        check_finite(self.parts[1], powers)
        return small_floats.f8_blocks("MXFP8", codes, powers)


def _plain(path: str) -> str:
    """A name without the prefixes that different programs use."""
    while path.startswith(("model.", "language_model.")):
        path = path.partition(".")[2]
    return path
