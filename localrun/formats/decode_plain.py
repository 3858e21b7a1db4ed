"""Decoders of the types that store one number an element. raw: uint8 [n, size] -> float32 [n, 1]"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.formats import bits
from localrun.formats.bits import words

if TYPE_CHECKING:
    import torch

f16, i8 = bits.fp16, bits.i8


def f32(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return words(raw, torch.float32)


def bf16(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return words(raw, torch.bfloat16).float()


def f64(raw: torch.Tensor) -> torch.Tensor:
    """Rounded on the CPU: Apple GPUs have no float64."""
    import torch

    return words(raw.cpu(), torch.float64).float().to(raw.device)


def u8(raw: torch.Tensor) -> torch.Tensor:
    return raw.float()


def u16(raw: torch.Tensor) -> torch.Tensor:
    return bits.u16(raw).float()


def u32(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return (words(raw, torch.int32).long() & 0xFFFF_FFFF).float()


def f8_e4m3(raw: torch.Tensor) -> torch.Tensor:
    """Without infinities: 0x7F and 0xFF are no numbers."""
    import torch

    return raw.view(torch.float8_e4m3fn).float()


def f8_e5m2(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return raw.view(torch.float8_e5m2).float()


def f8_e8m0(raw: torch.Tensor) -> torch.Tensor:
    """Powers of two, 2^(byte - 127); 0xFF is no number."""
    import torch

    return raw.view(torch.float8_e8m0fnu).float()


def i16(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return words(raw, torch.int16).float()


def i32(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return words(raw, torch.int32).float()


def i64(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return words(raw, torch.int64).float()
