"""Decoders of the types without scales of scales: an fp16 scale a block, for some a minimum, and 1 to 8 bits a number.

raw: uint8 [n, block_bytes] -> float32 [n, block_size]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.formats.bits import fp16, i8, planes

if TYPE_CHECKING:
    import torch


def q1_0(raw: torch.Tensor) -> torch.Tensor:
    """Plus or minus the scale, 128 of them."""
    return fp16(raw[:, :2]) * (2 * planes(raw[:, 2:], 1, 1).float() - 1)


def q2_0(raw: torch.Tensor) -> torch.Tensor:
    """-1, 0, 1 or 2 scales, 64 of them."""
    return fp16(raw[:, :2]) * (planes(raw[:, 2:], 2, 1).float() - 1)


def q4_0(raw: torch.Tensor) -> torch.Tensor:
    return fp16(raw[:, :2]) * (planes(raw[:, 2:], 4, 16).float() - 8)


def q4_1(raw: torch.Tensor) -> torch.Tensor:
    scale, minimum = fp16(raw[:, :2]), fp16(raw[:, 2:4])
    return scale * planes(raw[:, 4:], 4, 16).float() + minimum


def q5_0(raw: torch.Tensor) -> torch.Tensor:
    return fp16(raw[:, :2]) * (_five_bits(raw[:, 2:]) - 16)


def q5_1(raw: torch.Tensor) -> torch.Tensor:
    scale, minimum = fp16(raw[:, :2]), fp16(raw[:, 2:4])
    return scale * _five_bits(raw[:, 4:]) + minimum


def q8_0(raw: torch.Tensor) -> torch.Tensor:
    return fp16(raw[:, :2]) * i8(raw[:, 2:])


def _five_bits(raw: torch.Tensor) -> torch.Tensor:
    """4 bytes of fifth bits, then 16 bytes of nibbles."""
    return (planes(raw[:, 4:], 4, 16) | planes(raw[:, :4], 1, 1) << 4).float()
