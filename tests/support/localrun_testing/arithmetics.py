"""The arithmetics of the native library's linears, by name: what activations are rounded to, in torch."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST, MOST_FACTOR = 1e-30, 15  # of a group that does not count as zero; of a factor
OUTLIER_GAIN = 8


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


def outlier_int8(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Groups [R, groups of the row, 32]. The four neighbours of a group with the largest value may have 16 bits."""
    words = groups.unflatten(-1, (8, 4)).abs().amax(-1)
    top, following = words.topk(2).values.split(1, -1)
    of_int8, scale = int8(groups)
    counted = torch.where(top >= LEAST, scale, 0).double()
    usual = counted.minimum(counted.mean(-2, keepdim=True)).mean(-2, keepdim=True)
    gain = top.double().square() - following.double().square()
    apart = (gain > OUTLIER_GAIN * (127 * usual).square()) & (top >= LEAST)
    scale = torch.where(apart, torch.maximum(following / 127, top / (127 * 257)), scale)
    return torch.where(apart, codes(groups, 1 / scale, 127 * 257), of_int8), scale


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
    "int8+4/32": outlier_int8,
    "int8:8/32": factored_int8,
    "int16/32": int16,
}
"""By arithmetic: groups f32 [..., 32] -> whole numbers of the same shape, and their scale [..., 1]."""


def integers_of(arithmetic: str, q8: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """What rows of codes, int8 [R, bytes of a row], and words f32 [R, groups] of a buffer stand for: whole numbers
    [R, groups, 32], scales."""
    n, n_groups = words.shape
    if arithmetic == "int8+4/32":
        integers = q8[:, : 32 * n_groups].int()
        for row, outliers in zip(integers, q8[:, 32 * n_groups :], strict=True):
            n_outliers = outliers[:4].view(torch.int32).item()
            for outlier in outliers[4:].split(8)[:n_outliers]:  # high bytes of four columns, and which is the first
                column = outlier[4:].view(torch.int32).item()
                row[column : column + 4] += 256 * outlier[:4].int()
        return integers.view(n, n_groups, 32), words
    parts = q8.view(n, n_groups, -1, 32).int()
    groups = parts[:, :, 0]
    if arithmetic == "int16/32":
        return 256 * groups + parts[:, :, 1], words
    if arithmetic == "int8/32":
        return groups, words
    bits = words.view(torch.int32)
    column = torch.arange(32)
    factor = bits[..., None] >> (column // 16 * 8 + column % 4 // 2 * 4) & 15
    return groups * factor, (bits & ~0xFFFF).view(torch.float32)
