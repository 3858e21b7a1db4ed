"""Decoders of the K-quants: 256 elements, a scale for each 16 or 32 of them, itself scaled by one fp16.

raw: uint8 [n, block_bytes] -> float32 [n, 256]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.formats.bits import fp16, i8, planes, words

if TYPE_CHECKING:
    import torch


def q2_k(raw: torch.Tensor) -> torch.Tensor:
    packed, codes = raw[:, :16], planes(raw[:, 16:80], 2, 32)
    scales = fp16(raw[:, 80:82]) * (packed & 0xF).float()  # [n, 16]
    minima = fp16(raw[:, 82:84]) * (packed >> 4).float()
    return _grouped(codes.float(), scales, minima)


def q3_k(raw: torch.Tensor) -> torch.Tensor:
    """The third bit is stored inverted: where it is 0, 4 is subtracted."""
    low, high = planes(raw[:, 32:96], 2, 32), planes(raw[:, :32], 1, 32)
    packed = raw[:, 96:108]
    scales = planes(packed[:, :8], 4, 8) | planes(packed[:, 8:], 2, 4) << 4  # six bits each, [n, 16]
    codes = low.float() - (1 - high.float()) * 4
    return _grouped(codes, fp16(raw[:, 108:]) * (scales.float() - 32))


def q4_k(raw: torch.Tensor) -> torch.Tensor:
    scales, minima = _scales_and_minima(raw[:, :16])
    return _grouped(planes(raw[:, 16:], 4, 32).float(), scales, minima)


def q5_k(raw: torch.Tensor) -> torch.Tensor:
    scales, minima = _scales_and_minima(raw[:, :16])
    codes = planes(raw[:, 48:], 4, 32) | planes(raw[:, 16:48], 1, 32) << 4
    return _grouped(codes.float(), scales, minima)


def q6_k(raw: torch.Tensor) -> torch.Tensor:
    codes = planes(raw[:, :128], 4, 64) | planes(raw[:, 128:192], 2, 32) << 4
    return _grouped(codes.float() - 32, fp16(raw[:, 208:]) * i8(raw[:, 192:208]))


def q8_k(raw: torch.Tensor) -> torch.Tensor:
    """A float32 scale and 256 signed bytes; the sums of 16 behind them only serve dot products."""
    import torch

    return words(raw[:, :4], torch.float32) * i8(raw[:, 4:260])


def _scales_and_minima(raw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Head of Q4_K and Q5_K: fp16 scale, fp16 minimum, and eight pairs of 6-bit factors in 12 bytes.

    Factors 0-3 are the low six bits of bytes 0-3 (scales) and 4-7 (minima). Factors 4-7 have their low four bits in
    the halves of bytes 8-11, their high two bits on top of the same bytes 0-3 and 4-7.
    """
    first, second, third = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scales = first.new_empty(raw.shape[0], 8)
    minima = first.new_empty(raw.shape[0], 8)
    scales[:, :4], scales[:, 4:] = first & 0x3F, third & 0xF | first >> 2 & 0x30
    minima[:, :4], minima[:, 4:] = second & 0x3F, third >> 4 | second >> 2 & 0x30
    return fp16(raw[:, :2]) * scales.float(), fp16(raw[:, 2:4]) * minima.float()


def _grouped(codes: torch.Tensor, scales: torch.Tensor, minima: torch.Tensor | None = None) -> torch.Tensor:
    """scale * code - minimum, with one scale and minimum for each run of neighbours. codes [n, 256], scales [n, g]"""
    values = codes.reshape(*scales.shape, -1) * scales.unsqueeze(2)
    if minima is not None:
        values -= minima.unsqueeze(2)
    return values.flatten(1)
