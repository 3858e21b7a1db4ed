"""Decoders of the types that store one number an element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.formats import bits

if TYPE_CHECKING:
    import torch

f32, f16 = bits.fp32, bits.fp16
i8 = bits.i8


def bf16(raw: torch.Tensor) -> torch.Tensor:
    """The upper half of a float32."""
    import torch

    return (bits.u16(raw) << 16).view(torch.float32)


def f64(raw: torch.Tensor) -> torch.Tensor:
    """Rounded on the CPU: Apple GPUs have no float64."""
    import torch

    return bits.aligned(raw.cpu(), 8).view(torch.float64).float().to(raw.device)


def u8(raw: torch.Tensor) -> torch.Tensor:
    return raw.float()


def i16(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return bits.aligned(raw, 2).view(torch.int16).float()


def i32(raw: torch.Tensor) -> torch.Tensor:
    return bits.u32(raw).float()


def i64(raw: torch.Tensor) -> torch.Tensor:
    import torch

    return bits.aligned(raw, 8).view(torch.int64).float()
