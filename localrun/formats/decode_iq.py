"""Decoders of the grid types: a code names a whole group of 4 or 8 magnitudes, signs and scales come beside it.

raw: uint8 [n, block_bytes] -> float32 [n, 256]. The grids are tables of the gguf package.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from localrun.formats.bits import fp16, lookup, planes, signs, u16, u32

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

IQ1_DELTA = 0.125
# Seven sign bits name eight signs: the eighth makes the number of minuses even.
EVEN_SIGNS = tuple(code | (code.bit_count() & 1) << 7 for code in range(128))


def iq2_xxs(raw: torch.Tensor) -> torch.Tensor:
    """Groups of 32: four grid codes of 8 elements, then four times 7 sign bits and a 4-bit scale in one word."""
    groups = raw[:, 2:].reshape(-1, 8, 8)
    words = u32(groups[..., 4:])  # [n, 8, 1]
    scales = fp16(raw[:, :2]) * (0.5 + (words[..., 0] >> 28 & 0xF).float()) * 0.25  # [n, 8]
    return _spread(scales, lookup(_grid("IQ2_XXS", raw.device), groups[..., :4]) * _even_signs(words))


def iq2_xs(raw: torch.Tensor) -> torch.Tensor:
    """Codes of 9 grid bits and 7 sign bits; a 4-bit scale for each 16 elements."""
    codes = u16(raw[:, 2:66])  # [n, 32]
    magnitudes = lookup(_grid("IQ2_XS", raw.device), codes & 511).flatten(1)
    sign_bits = planes(lookup(_sign_table(raw.device), codes >> 9), 1, 1)
    return _spread(_nibble_scales(raw[:, :2], raw[:, 66:]), magnitudes * signs(sign_bits))


def iq2_s(raw: torch.Tensor) -> torch.Tensor:
    """Ten grid bits (two of them apart), plain sign bits, and a 4-bit scale for each 16 elements."""
    codes = raw[:, 2:34].int() | planes(raw[:, 66:74], 2, 1).int() << 8  # [n, 32]
    magnitudes = lookup(_grid("IQ2_S", raw.device), codes).flatten(1)
    return _spread(_nibble_scales(raw[:, :2], raw[:, 74:]), magnitudes * signs(planes(raw[:, 34:66], 1, 1)))


def iq3_xxs(raw: torch.Tensor) -> torch.Tensor:
    """Grid codes of 4 elements; for each 32 elements a word like that of IQ2_XXS."""
    words = u32(raw[:, 66:]).unsqueeze(2)  # [n, 8, 1]
    scales = fp16(raw[:, :2]) * (0.5 + (words[..., 0] >> 28 & 0xF).float()) * 0.5
    magnitudes = lookup(_grid("IQ3_XXS", raw.device), raw[:, 2:66])  # [n, 64, 4]
    return _spread(scales, magnitudes.reshape(-1, 8, 4, 8) * _even_signs(words))


def iq3_s(raw: torch.Tensor) -> torch.Tensor:
    """Nine grid bits (one apart), plain sign bits, and a 4-bit scale for each 32 elements."""
    codes = raw[:, 2:66].int() | planes(raw[:, 66:74], 1, 1).int() << 8  # [n, 64]
    magnitudes = lookup(_grid("IQ3_S", raw.device), codes).flatten(1)
    scales = fp16(raw[:, :2]) * (1 + 2 * planes(raw[:, 106:], 4, 1).float())  # [n, 8]
    return _spread(scales, magnitudes * signs(planes(raw[:, 74:106], 1, 1)))


def iq1_s(raw: torch.Tensor) -> torch.Tensor:
    """Ternary grid of 8 elements; for each 32 a word: four times 3 grid bits, a 3-bit scale, the sign of the shift."""
    words = u16(raw[:, 34:])  # [n, 8]
    high = words.unsqueeze(2) >> words.new_tensor([0, 3, 6, 9]) & 7
    codes = raw[:, 2:34].int() | high.flatten(1) << 8
    scales = fp16(raw[:, :2]) * (1 + 2 * (words >> 12 & 7)).float()
    shift = signs(words >> 15) * IQ1_DELTA
    values = lookup(_grid("IQ1_S", raw.device), codes).reshape(-1, 8, 32)
    return _spread(scales, values + shift.unsqueeze(2))


def iq1_m(raw: torch.Tensor) -> torch.Tensor:
    """The grid of IQ1_S with a shift for each 8 elements; the fp16 scale is the top nibbles of four scale words."""
    words = u16(raw[:, 48:])  # [n, 4]
    scale_bytes = raw.new_empty(raw.shape[0], 2)
    scale_bytes[:, 0] = words[:, 0] >> 12 | words[:, 1] >> 12 << 4
    scale_bytes[:, 1] = words[:, 2] >> 12 | words[:, 3] >> 12 << 4
    factors = words.unsqueeze(2) >> words.new_tensor([0, 3, 6, 9]) & 7  # [n, 4, 4]
    nibbles = planes(raw[:, 32:48], 4, 1)  # [n, 32]
    codes = raw[:, :32].int() | (nibbles & 7).int() << 8
    shift = signs(nibbles >> 3) * IQ1_DELTA
    scales = fp16(scale_bytes) * (1 + 2 * factors.flatten(1)).float()  # [n, 16]
    return _spread(scales, lookup(_grid("IQ1_S", raw.device), codes) + shift.unsqueeze(2))


def _nibble_scales(half: torch.Tensor, raw: torch.Tensor) -> torch.Tensor:
    return fp16(half) * (0.5 + planes(raw, 4, 1).float()) * 0.25


def _even_signs(words: torch.Tensor) -> torch.Tensor:
    """Four times seven sign bits in each word. int32 [n, 8, 1] -> float32 [n, 8, 4, 8]"""
    codes = words >> words.new_tensor([0, 7, 14, 21]) & 0x7F  # [n, 8, 4]
    return signs(planes(lookup(_sign_table(words.device), codes).flatten(1), 1, 1)).reshape(-1, 8, 4, 8)


def _spread(scales: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Each scale times its run of neighbours. scales [n, g], values 256 a block in any shape"""
    runs = values.reshape(*scales.shape, -1)
    return (scales.unsqueeze(2) * runs).flatten(1)


@cache
def _sign_table(device: torch.device) -> torch.Tensor:
    import torch

    return torch.tensor(EVEN_SIGNS, dtype=torch.uint8, device=device)


@cache
def _grid(name: str, device: torch.device) -> torch.Tensor:
    """float32 [n_codes, 4 or 8]"""
    import torch

    return torch.from_numpy(grid_table(name)).to(device)


def grid_table(name: str) -> npt.NDArray[np.float32]:
    """The vectors that the codes of a grid type name [n_codes, 4 or 8]; they are small whole numbers."""
    from gguf import quants

    owner = getattr(quants, name)
    owner.init_grid()
    table: npt.NDArray[np.float32] = owner.grid.reshape(owner.grid_shape)
    return table
