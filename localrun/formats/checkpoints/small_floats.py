"""Floats of 4 and 8 bits: their numbers, and the blocks of GGUF types that hold them. Arrays of uint8 come flat."""

import numpy as np

from localrun.formats.checkpoints.parts import check_finite
from localrun.formats.decode_table import FP4_VALUES
from localrun.formats.files import bad_file, shown
from localrun.formats.source import TensorInfo

_E2M1 = np.array(FP4_VALUES, np.float32) / 2
_BYTES = np.arange(256)
_SIGN = np.where(_BYTES & 0x80, -1, 1)
_MANTISSA, _EXPONENT = _BYTES & 7, _BYTES >> 3 & 15
_E4M3 = (_SIGN * np.where(_EXPONENT, np.ldexp(8 + _MANTISSA, _EXPONENT - 10), np.ldexp(_MANTISSA, -9))).astype(
    np.float32
)
_E4M3[[0x7F, 0xFF]] = np.nan


def f8_e4m3(codes: np.ndarray) -> np.ndarray:
    """Codes as f32; 0x7F and 0xFF are no numbers."""
    values: np.ndarray = _E4M3[codes]
    return values


def f8_e5m2(codes: np.ndarray) -> np.ndarray:
    """Codes as f32: the upper half of fp16."""
    wide: np.ndarray = (codes.astype("<u2") << 8).view("<f2").astype(np.float32)
    return wide


def powers_of_two(codes: np.ndarray) -> np.ndarray:
    """E8M0 as f32, 2^(code - 127); 0xFF is no number."""
    return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127)).astype(np.float32)


def bf16_bytes(values: np.ndarray) -> bytearray:
    """F32 numbers that bf16 holds to the bit, as such."""
    return bytearray((np.ascontiguousarray(values).view("<u4") >> 16).astype("<u2").data)


def check_e4m3(part: TensorInfo, codes: np.ndarray) -> None:
    """ModelFileError for a code that is no number."""
    if ((codes & 0x7F) == 0x7F).any():
        raise bad_file("NOT_FINITE", f"the tensor {shown(part.name)} is not finite", part.file, part.offset)


def f8_blocks(qtype: str, codes: np.ndarray, scales: np.ndarray) -> bytearray:
    """E4M3 codes in F8_G128 or MXFP8: f32 scales, of MXFP8 powers of two, one a block."""
    flat = scales.astype("<f4").reshape(-1, 1)
    parts = flat.view(np.uint8) if qtype == "F8_G128" else exponents(flat)
    return bytearray(np.concatenate((parts, codes.reshape(len(flat), -1)), axis=1).data)


def exponents(powers: np.ndarray) -> np.ndarray:
    """Powers of two (f32) as E8M0."""
    found: np.ndarray = (np.frexp(powers)[1] + 126).astype(np.uint8)
    return found


def in_floats(qtype: str, values: np.ndarray) -> bytearray:
    """F32 numbers as F32, F16 or BF16: rounded to the nearest, ties to even."""
    if qtype != "BF16":
        with np.errstate(over="ignore"):
            return bytearray(np.ascontiguousarray(values, "<f2" if qtype == "F16" else "<f4").data)
    raw = np.ascontiguousarray(values, "<f4").view("<u4")
    return bytearray((raw + (0x7FFF + (raw >> 16 & 1)) >> 16).astype("<u2").data)


def fp4_blocks(codes: np.ndarray, exponents: np.ndarray) -> bytearray:
    """MXFP4 blocks of codes of which neighbours share a byte."""
    return bytearray(np.concatenate((exponents[:, None], _halves_together(codes, 32)), axis=1).data)


def fp4_rows_of_16(qtype: str, codes: np.ndarray, scales: np.ndarray) -> bytearray:
    """Codes of which neighbours share a byte, with an E4M3 scale for 16 of them: as NVFP4 blocks or as F32."""
    if qtype == "NVFP4":
        nibbles = _halves_together(codes, 16).reshape(-1, 32)
        return bytearray(np.concatenate((scales.reshape(-1, 4), nibbles), axis=1).data)
    numbers = _E2M1[np.stack((codes & 15, codes >> 4), axis=-1)].reshape(-1, 16)
    return bytearray((numbers * _E4M3[scales][:, None]).data)


def check_e4m3_scales(part: TensorInfo, scales: np.ndarray) -> None:
    """ModelFileError for a scale that is no number, or negative: NVFP4 has no sign for it."""
    check_finite(part, _E4M3[scales])
    if (scales > 0x80).any():
        raise bad_file("UNSUPPORTED", f"the tensor {shown(part.name)} has negative scales", part.file, part.offset)


def _halves_together(codes: np.ndarray, run: int) -> np.ndarray:
    """Nibbles of which neighbours share a byte, so that one of the first half of a run shares it with one of the second
    -> uint8 [runs, run / 2]"""
    numbers = np.stack((codes & 15, codes >> 4), axis=-1).reshape(-1, run)
    joined: np.ndarray = numbers[:, : run // 2] | numbers[:, run // 2 :] << 4
    return joined
