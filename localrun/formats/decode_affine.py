"""Decoders of affine groups as checkpoints have them: an fp16 scale, an fp16 minimum, and codes that are no GGUF's.

Codes follow each other bit by bit, the lowest bit first. raw: uint8 [n, block_bytes] -> float32 [n, block_size]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from localrun.formats.bits import bit_stream, fp16

if TYPE_CHECKING:
    import torch


def affine(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The decoder of codes of so many bits."""

    def decode(raw: torch.Tensor) -> torch.Tensor:
        scale, minimum = fp16(raw[:, :2]), fp16(raw[:, 2:4])
        return scale * bit_stream(raw[:, 4:], bits).float() + minimum

    return decode


def zero_point(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The decoder of codes of so many bits after an fp16 scale and a byte that is subtracted from them."""

    def decode(raw: torch.Tensor) -> torch.Tensor:
        return fp16(raw[:, :2]) * (bit_stream(raw[:, 3:], bits).float() - raw[:, 2:3].float())

    return decode
