"""The definition of the KV codecs in torch: codes and scales of keys and values, and the Hadamard rotation.

Everything is element by element or an exact maximum, in fp32, so a token's codes never depend on its neighbours.
"""

import math

import torch
from torch import Tensor

from localrun.ops.interface import PlainKV
from localrun.ops.kv import MAX_F16, SCALE_GROUP

CODES = {8: (-127, 127), 4: (-8, 7)}  # smallest and largest


def encode(x: Tensor, bits: int) -> PlainKV:
    """The stored form of x f32 [..., n_kv_heads, head_dim]; below 32 bits values are clamped to ±65504 first.

    8 bit: scale = max|x| / 127. 4 bit: the range is cut into 16 cells as wide as `scale`; a code stands for the middle
    of its cell, `offset` is the middle of cell 0, the ninth. Codes are computed with the fp16-rounded scale and
    offset, ties to even. NaN makes the scale NaN.
    """
    if bits == 32:
        return PlainKV(x)
    x = x.clamp(-MAX_F16, MAX_F16)
    if bits == 16:
        return PlainKV(x.half())
    groups = x.split(SCALE_GROUP, dim=-1)
    high = torch.stack([group.amax(-1) for group in groups], dim=-1)  # [..., n_kv_heads, scale groups]
    low = torch.stack([group.amin(-1) for group in groups], dim=-1)
    if bits == 8:
        scale, offset = (torch.maximum(high, -low) / 127).half(), None
        centred = x
    else:
        cell = (high - low) / 16
        scale, offset = cell.half(), (low + 8.5 * cell).half()
        centred = x - spread(offset, x)
    inverse = torch.where(scale > 0, 1 / scale.float(), 0.0)
    codes = (centred * spread(inverse, x)).round().to(torch.int32)  # of NaN: some integer
    return PlainKV(codes.clamp(*CODES[bits]).to(torch.int8), scale, offset)


def decode(stored: PlainKV) -> Tensor:
    """The f32 values that attention computes with."""
    x = stored.codes.float()
    if stored.scale is not None:
        x = x * spread(stored.scale, x)
    return x if stored.offset is None else x + spread(stored.offset, x)


def spread(per_group: Tensor, like: Tensor) -> Tensor:
    """Values of scale groups [..., groups] for each of their elements -> f32, shaped as `like`."""
    return per_group.float().repeat_interleave(SCALE_GROUP, dim=-1)[..., : like.shape[-1]]


def rotate_hadamard(x: Tensor) -> Tensor:
    """x times an orthonormal Hadamard matrix over blocks of the largest 2^k that divides the last dim.

    The fast Walsh–Hadamard transform, strides 1, 2, 4, … ascending, one scaling at the end. It is its own inverse.
    """
    n = x.shape[-1]
    size = n & -n
    y: Tensor = x.unflatten(-1, (n // size, size))
    stride = 1
    while stride < size:
        first, second = y.unflatten(-1, (size // (2 * stride), 2, stride)).unbind(-2)
        y = torch.stack((first + second, first - second), dim=-2).flatten(-3)
        stride *= 2
    return (y * (1 / math.sqrt(size))).flatten(-2)
