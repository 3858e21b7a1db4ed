"""Decoders of groups of integers as checkpoints have them: a scale, a minimum or zero point, and codes of no GGUF.

Scales and minima are fp16, or f32 in the wide types. Codes follow each other bit by bit, the lowest bit first.
raw: uint8 [n, block_bytes] -> float32 [n, block_size]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from localrun.formats.bits import bit_stream, fp16, words

if TYPE_CHECKING:
    import torch

Decoder: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


def affine(bits: int, wide: bool = False) -> Decoder:
    """The decoder of codes of so many bits after a scale and a minimum."""
    width = 4 if wide else 2

    def decode(raw: torch.Tensor) -> torch.Tensor:
        scale, minimum = (_number(raw[:, at : at + width]) for at in (0, width))
        return scale * bit_stream(raw[:, 2 * width :], bits).float() + minimum

    return decode


def zero_point(bits: int, wide: bool = False) -> Decoder:
    """The decoder of codes of so many bits after a scale and a byte that is subtracted from them."""
    width = 4 if wide else 2

    def decode(raw: torch.Tensor) -> torch.Tensor:
        levels = bit_stream(raw[:, width + 1 :], bits).float() - raw[:, width : width + 1].float()
        return _number(raw[:, :width]) * levels

    return decode


def symmetric(bits: int) -> Decoder:
    """The decoder of codes of so many bits, zero in the middle, after an f32 scale."""

    def decode(raw: torch.Tensor) -> torch.Tensor:
        return _number(raw[:, :4]) * (bit_stream(raw[:, 4:], bits).float() - (1 << (bits - 1)))

    return decode


def _number(raw: torch.Tensor) -> torch.Tensor:
    """Two bytes as fp16, or four as float32. -> float32 [n, 1]"""
    import torch

    return fp16(raw) if raw.shape[1] == 2 else words(raw, torch.float32)
