"""The arithmetics of the native library's linears, by name: what activations are rounded to, in torch."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST, MOST_FACTOR = 1e-30, 15  # of a group that does not count as zero; of a factor


def rounded(x: Tensor, arithmetic: str) -> Tensor:
    """What activations f32 [R, n] are multiplied as, to the bit but for the last multiplication, by the scale."""
    groups = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))
    integers, scale = ROUNDINGS[arithmetic](groups)
    return (integers * scale).flatten(1)[:, : x.shape[1]]


def int8(groups: Tensor) -> tuple[Tensor, Tensor]:
    greatest = groups.abs().amax(-1, keepdim=True)
    return codes(groups, torch.where(greatest >= LEAST, 127 / greatest, 0.0)), greatest / 127


def factored_int8(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Columns 0, 1, 4, 5, … of 16 share the least factor that leaves no code above 127; the others another."""
    pairs = groups.unflatten(-1, (2, 4, 2, 2))  # half of the group, four columns, which pair of them, column
    largest = pairs.abs().amax((-3, -1), keepdim=True)
    greatest = groups.abs().amax(-1)[..., None, None, None, None]
    scale = to_bf16_upwards(greatest / (MOST_FACTOR * 127))
    factor = (largest / (scale * 127)).ceil().clamp(1, MOST_FACTOR)
    counted = codes(pairs, torch.where(greatest >= LEAST, 1 / (scale * factor), 0.0)) * factor
    return counted.flatten(-4), scale[..., 0, 0, 0]


def codes(x: Tensor, inverse: Tensor) -> Tensor:
    """The nearest, halves to even."""
    return (x * inverse).round().clamp(-127, 127)


def to_bf16_upwards(x: Tensor) -> Tensor:
    """The least bf16 that is not below x >= 0."""
    return ((x.view(torch.int32) + 0xFFFF) & ~0xFFFF).view(torch.float32)


ROUNDINGS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {"int8/32": int8, "int8:8/32": factored_int8}
"""By arithmetic: groups f32 [..., 32] -> whole numbers of the same shape, and their scale [..., 1]."""


def integers_of(arithmetic: str, q8: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """What codes int8 [R, n] and words f32 [R, n / 32] of a buffer stand for: whole numbers [R, n / 32, 32], scales."""
    groups = q8.int().unflatten(1, (-1, 32))
    if arithmetic == "int8/32":
        return groups, words
    bits = words.view(torch.int32)
    column = torch.arange(32)
    factor = bits[..., None] >> (column // 16 * 8 + column % 4 // 2 * 4) & 15
    return groups * factor, (bits & ~0xFFFF).view(torch.float32)
