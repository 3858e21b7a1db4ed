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


def int8(groups: Tensor, most: int = 127) -> tuple[Tensor, Tensor]:
    greatest = groups.abs().amax(-1, keepdim=True)
    return codes(groups, torch.where(greatest >= LEAST, most / greatest, 0.0), most), greatest / most


def int16(groups: Tensor) -> tuple[Tensor, Tensor]:
    return int8(groups, most=127 * 257)  # whose bytes are both signed


def factored_int8(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Columns 0, 1, 4, 5, … of 16 share the least factor that leaves no code above 127; the others another."""
    pairs = groups.unflatten(-1, (2, 4, 2, 2))  # half of the group, four columns, which pair of them, column
    largest = pairs.abs().amax((-3, -1), keepdim=True)
    greatest = groups.abs().amax(-1)[..., None, None, None, None]
    scale = to_bf16_upwards(greatest / (MOST_FACTOR * 127))
    factor = (largest / (scale * 127)).ceil().clamp(1, MOST_FACTOR)
    counted = codes(pairs, torch.where(greatest >= LEAST, 1 / (scale * factor), 0.0)) * factor
    return counted.flatten(-4), scale[..., 0, 0, 0]


def codes(x: Tensor, inverse: Tensor, most: int = 127) -> Tensor:
    """The nearest, halves to even."""
    return (x * inverse).round().clamp(-most, most)


def to_bf16_upwards(x: Tensor) -> Tensor:
    """The least bf16 that is not below x >= 0."""
    return ((x.view(torch.int32) + 0xFFFF) & ~0xFFFF).view(torch.float32)


ROUNDINGS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "int8/32": int8,
    "int8:8/32": factored_int8,
    "int16/32": int16,
}
"""By arithmetic: groups f32 [..., 32] -> whole numbers of the same shape, and their scale [..., 1]."""


def integers_of(arithmetic: str, q8: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """What codes int8 [R, groups, bytes, 32], high ones first, and words f32 [R, groups] of a buffer stand for: whole
    numbers [R, groups, 32], scales."""
    parts = q8.int()
    groups = parts[:, :, 0]
    if arithmetic == "int16/32":
        return 256 * groups + parts[:, :, 1], words
    if arithmetic == "int8/32":
        return groups, words
    bits = words.view(torch.int32)
    column = torch.arange(32)
    factor = bits[..., None] >> (column // 16 * 8 + column % 4 // 2 * 4) & 15
    return groups * factor, (bits & ~0xFFFF).view(torch.float32)
