"""Codes of the grid types (IQ1 to IQ3) as signed bytes: a code names 4 or 8 magnitudes, signs come beside it."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from localrun.formats.bits import planes, u32
from localrun.formats.decode_iq import EVEN_SIGNS, grid_table


def signed(grid: str, codes: Tensor, sign_bits: Tensor) -> Tensor:
    """Values of `codes`, negative where a bit of `sign_bits` (uint8 [n, 32]) is set. int8 bits as uint8 [n, 256]"""
    magnitudes = grid_bytes(grid, codes.device)[codes.long()].flatten(1)
    return torch.where(planes(sign_bits, 1, 1).bool(), -magnitudes, magnitudes).view(torch.uint8)


def shifted(codes: Tensor, down: Tensor) -> Tensor:
    """Eight ternary numbers a code of IQ1, in eighths and moved by one down or up. uint8 [n, 256]"""
    values = 8 * grid_bytes("IQ1_S", codes.device)[codes.long()]  # [n, 32, 8]
    return (values + (1 - 2 * down.to(torch.int8)).unsqueeze(2)).flatten(1).view(torch.uint8)


def words_of_groups(raw: Tensor) -> Tensor:
    """The 32-bit word of each group. uint8 [n, 8, 4] -> int32 [n, 8]"""
    return u32(raw.contiguous()).squeeze(2)


def even_signs(words: Tensor) -> Tensor:
    """Signs of four times eight numbers, seven bits each, in the words of groups [n, 8] -> uint8 [n, 32]"""
    return eighth_sign(words.unsqueeze(2) >> words.new_tensor([0, 7, 14, 21]) & 127).flatten(1)


def eighth_sign(seven: Tensor) -> Tensor:
    """Seven sign bits name eight signs: the number of minuses is even."""
    return torch.tensor(EVEN_SIGNS, dtype=torch.uint8, device=seven.device)[seven.long()]


@cache
def grid_bytes(name: str, device: torch.device) -> Tensor:
    """int8 [n_codes, 4 or 8]"""
    return torch.from_numpy(grid_table(name).astype(np.int8)).to(device)
