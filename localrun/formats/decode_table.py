"""Decoders whose codes are names of numbers: non-linear 4 bit, floating 4 and 8 bit, and ternary.

raw: uint8 [n, block_bytes] -> float32 [n, block_size]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from localrun.formats.bits import fp16, lookup, planes, words
from localrun.formats.decode_plain import f8_e4m3, f8_e8m0

if TYPE_CHECKING:
    import torch

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)  # e2m1, doubled
NF4_VALUES = (  # Dettmers et al. 2023, arXiv 2305.14314
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
POWERS_OF_3 = (1, 3, 9, 27, 81)


def iq4_nl(raw: torch.Tensor) -> torch.Tensor:
    return fp16(raw[:, :2]) * _named(raw[:, 2:], 16, IQ4_VALUES)


def iq4_xs(raw: torch.Tensor) -> torch.Tensor:
    """256 elements in groups of 32 with a 6-bit scale: four low bits in bytes 4-7, two high bits in bytes 2-3."""
    high = planes(raw[:, 2:4], 2, 1)  # [n, 8]
    scales = planes(raw[:, 4:8], 4, 1) | high << 4
    values = _named(raw[:, 8:], 16, IQ4_VALUES).reshape(-1, 8, 32)
    return ((fp16(raw[:, :2]) * (scales.float() - 32)).unsqueeze(2) * values).flatten(1)


def mxfp4(raw: torch.Tensor) -> torch.Tensor:
    """32 elements and a power of two, e8m0."""
    scale = lookup(_table(raw, [2.0 ** (exponent - 128) for exponent in range(256)]), raw[:, :1])
    return scale * _named(raw[:, 1:], 16, FP4_VALUES)


def nvfp4(raw: torch.Tensor) -> torch.Tensor:
    """64 elements in groups of 16, each with a scale of type ue4m3."""
    scales = lookup(_table(raw, [ue4m3(code) / 2 for code in range(256)]), raw[:, :4])  # [n, 4]
    values = _named(raw[:, 4:], 8, FP4_VALUES).reshape(-1, 4, 16)
    return (scales.unsqueeze(2) * values).flatten(1)


def f8_g128(raw: torch.Tensor) -> torch.Tensor:
    """A float32 scale and 128 elements, e4m3."""
    import torch

    return words(raw[:, :4], torch.float32) * f8_e4m3(raw[:, 4:])


def mxfp8(raw: torch.Tensor) -> torch.Tensor:
    """A power of two, e8m0, and 32 elements, e4m3."""
    return f8_e8m0(raw[:, :1]) * f8_e4m3(raw[:, 1:])


def nf4_g64(raw: torch.Tensor) -> torch.Tensor:
    """A float32 scale and 64 elements, the first of a byte in its lower half."""
    import torch

    return words(raw[:, :4], torch.float32) * _named(raw[:, 4:], 1, NF4_VALUES)


def tq1_0(raw: torch.Tensor) -> torch.Tensor:
    """Five ternary digits a byte (four in the last four bytes), read from the top by multiplying with powers of 3."""
    digits = [_ternary_digits(raw[:, :32], 5), _ternary_digits(raw[:, 32:48], 5), _ternary_digits(raw[:, 48:52], 4)]
    values = raw.new_empty(raw.shape[0], 256)
    values[:, :160], values[:, 160:240], values[:, 240:] = digits
    return fp16(raw[:, 52:]) * (values.float() - 1)


def tq2_0(raw: torch.Tensor) -> torch.Tensor:
    return fp16(raw[:, 64:]) * (planes(raw[:, :64], 2, 32).float() - 1)


def _named(raw: torch.Tensor, run: int, values: Sequence[float]) -> torch.Tensor:
    """Nibbles as the values they stand for."""
    return lookup(_table(raw, values), planes(raw, 4, run))


def _table(raw: torch.Tensor, values: Sequence[float]) -> torch.Tensor:
    import torch

    return torch.tensor(values, dtype=torch.float32, device=raw.device)


def ue4m3(code: int) -> float:
    """Unsigned e4m3, bias 7; the sign bit is ignored, and 0x7F (not a number) counts as 0."""
    exponent, mantissa = code >> 3 & 0xF, code & 7
    if code == 0x7F:
        return 0.0
    return (1 + mantissa / 8) * 2.0 ** (exponent - 7) if exponent else mantissa * 2.0**-9


def _ternary_digits(raw: torch.Tensor, n_digits: int) -> torch.Tensor:
    """A byte is a fraction of 256; digit k is the whole part of 3 * (byte * 3^k mod 256) / 256."""
    powers = raw.new_tensor(POWERS_OF_3[:n_digits]).view(-1, 1)
    shifted = raw.unsqueeze(1) * powers  # wraps at 256
    return (shifted.short() * 3 >> 8).byte().flatten(1)
