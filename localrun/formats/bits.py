"""Taking packed bytes apart. Tensor methods only, in integers of at most 64 bits and float32: runs on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def planes(raw: torch.Tensor, bits: int, run: int) -> torch.Tensor:
    """Unpack `bits`-wide fields: of every `run` bytes, first all lowest fields, then all next ones, and so on.

    uint8 [n, k] -> uint8 [n, k * 8 / bits]
    """
    shifts = raw.new_tensor(range(0, 8, bits)).view(-1, 1)
    fields = (raw.reshape(raw.shape[0], -1, 1, run) >> shifts) & ((1 << bits) - 1)  # [n, k / run, 8 / bits, run]
    return fields.flatten(1)


def bit_stream(raw: torch.Tensor, bits: int) -> torch.Tensor:
    """Codes that follow each other bit by bit, the lowest bit first: eight of them in every `bits` bytes.

    uint8 [n, k] -> uint8 [n, k * 8 / bits]
    """
    if 8 % bits == 0:
        return planes(raw, bits, 1)
    places, codes = raw.new_tensor(range(0, 8 * bits, 8)).long(), raw.new_tensor(range(0, 8 * bits, bits)).long()
    eights = (raw.reshape(raw.shape[0], -1, bits).long() << places).sum(-1, keepdim=True)  # [n, k / bits, 1]
    return (eights >> codes & ((1 << bits) - 1)).byte().flatten(1)


def words(raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same bytes as little-endian numbers of `dtype`, wherever in memory they start. [.., k] -> [.., k / size]"""
    flat = raw.reshape(-1)
    if flat.storage_offset() % dtype.itemsize:
        flat = flat.clone()
    return flat.view(dtype).reshape(*raw.shape[:-1], raw.shape[-1] // dtype.itemsize)


def fp16(raw: torch.Tensor) -> torch.Tensor:
    """IEEE halves as float32. uint8 [n, 2 k] -> float32 [n, k]"""
    import torch

    return words(raw, torch.float16).float()


def i8(raw: torch.Tensor) -> torch.Tensor:
    """Signed bytes as float32."""
    import torch

    return raw.view(torch.int8).float()


def u16(raw: torch.Tensor) -> torch.Tensor:
    """16-bit words as int32. uint8 [n, 2 k] -> int32 [n, k]"""
    return raw[..., 0::2].int() | raw[..., 1::2].int() << 8


def u32(raw: torch.Tensor) -> torch.Tensor:
    """32-bit words as int32: the top bit is the sign, so mask after every shift. uint8 [.., 4 k] -> int32 [.., k]"""
    import torch

    return words(raw, torch.int32)


def signs(bits: torch.Tensor) -> torch.Tensor:
    """Bit 0 -> +1, bit 1 -> -1, as float32."""
    return 1 - 2 * bits.float()


def lookup(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows of `table` by an index tensor of any shape and integer type."""
    return table[index.long()]
