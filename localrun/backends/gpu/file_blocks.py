"""Blocks of a file taken apart into codes and scales, on any device: what localrun/formats/decode_*.py multiplies out.

raw: uint8 [n, block_bytes] of one quant type.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from localrun.backends.gpu import grid_codes
from localrun.base.dataclass import dataclass
from localrun.formats.bits import bit_stream, fp16, planes, u16, words
from localrun.formats.decode_table import POWERS_OF_3, ue4m3


@dataclass(frozen=True, slots=True)
class FileBlocks:
    """A number is scale · (code - zero) + minimum. Scales of 256 columns multiply those of their groups."""

    codes: Tensor  # uint8 [n, block_size], int8 codes as their bits
    scales: Tensor  # [n, groups]: float16, or bytes
    minima: Tensor | None = None  # likewise
    supers: Tensor | None = None  # [n, 1]: float32; or float16 [n, 2]: of the scales, and of minima that are subtracted


def q4_0(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 2:], 4, 16), halves(raw[:, :2]))


def q4_1(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 4:], 4, 16), halves(raw[:, :2]), halves(raw[:, 2:4]))


def q5_0(raw: Tensor) -> FileBlocks:
    return FileBlocks(five_bits(raw[:, 2:]), halves(raw[:, :2]))


def q5_1(raw: Tensor) -> FileBlocks:
    return FileBlocks(five_bits(raw[:, 4:]), halves(raw[:, :2]), halves(raw[:, 2:4]))


def five_bits(raw: Tensor) -> Tensor:
    """4 bytes of fifth bits, then 16 bytes of nibbles."""
    return planes(raw[:, 4:], 4, 16) | planes(raw[:, :4], 1, 1) << 4


def q8_0(raw: Tensor) -> FileBlocks:
    return FileBlocks(raw[:, 2:], halves(raw[:, :2]))


def mxfp4(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 1:], 4, 16), raw[:, :1])


def nvfp4(raw: Tensor) -> FileBlocks:
    scale_of = torch.tensor([ue4m3(code) / 2 for code in range(256)], dtype=torch.float16, device=raw.device)
    return FileBlocks(planes(raw[:, 4:], 4, 8), scale_of[raw[:, :4].long()])


def affine_of_64(bits: int) -> Callable[[Tensor], FileBlocks]:
    """Blocks of affine groups of 64; the layouts have a scale for 32."""

    def unpack(raw: Tensor) -> FileBlocks:
        return FileBlocks(
            bit_stream(raw[:, 4:], bits), halves(raw[:, :2]).repeat(1, 2), halves(raw[:, 2:4]).repeat(1, 2)
        )

    return unpack


def zero_point_of_4(raw: Tensor) -> FileBlocks:
    """Codes of 4 bits less a zero point, as Q5_0 has them; the layout has a scale for 32."""
    codes = bit_stream(raw[:, 3:], 4)
    return FileBlocks(codes - raw[:, 2:3] + 16, halves(raw[:, :2]).repeat(1, codes.shape[1] // 32))


def q2_k(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 16:80], 2, 32), raw[:, :16] & 15, raw[:, :16] >> 4, halves(raw[:, 80:84]))


def q3_k(raw: Tensor) -> FileBlocks:
    """The third bit is stored inverted: code - 4 is the number."""
    codes = planes(raw[:, 32:96], 2, 32) | planes(raw[:, :32], 1, 32) << 2
    scales = planes(raw[:, 96:104], 4, 8) | planes(raw[:, 104:108], 2, 4) << 4
    return FileBlocks(codes, scales - 32, supers=fp16(raw[:, 108:]))


def q4_k(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 16:], 4, 32), *six_bit_scales(raw))


def q5_k(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, 48:], 4, 32) | planes(raw[:, 16:48], 1, 32) << 4, *six_bit_scales(raw))


def six_bit_scales(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scales, minima and supers of Q4_K and Q5_K."""
    first, second, third = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scales = torch.cat((first & 63, third & 15 | first >> 2 & 48), 1)
    minima = torch.cat((second & 63, third >> 4 | second >> 2 & 48), 1)
    return scales, minima, halves(raw[:, :4])


def q6_k(raw: Tensor) -> FileBlocks:
    codes = planes(raw[:, :128], 4, 64) | planes(raw[:, 128:192], 2, 32) << 4
    return FileBlocks(codes, raw[:, 192:208], supers=fp16(raw[:, 208:]))


def q8_k(raw: Tensor) -> FileBlocks:
    return FileBlocks(raw[:, 4:260], ones(raw), supers=words(raw[:, :4].contiguous(), torch.float32))


def iq4_xs(raw: Tensor) -> FileBlocks:
    scales = planes(raw[:, 4:8], 4, 1) | planes(raw[:, 2:4], 2, 1) << 4
    return FileBlocks(planes(raw[:, 8:], 4, 16), scales - 32, supers=fp16(raw[:, :2]))


def tq1_0(raw: Tensor) -> FileBlocks:
    parts = [ternary_digits(raw[:, :32], 5), ternary_digits(raw[:, 32:48], 5), ternary_digits(raw[:, 48:52], 4)]
    return FileBlocks(torch.cat(parts, 1) - 1, ones(raw), supers=fp16(raw[:, 52:]))


def ternary_digits(raw: Tensor, n_digits: int) -> Tensor:
    """Bytes are fractions of 256: all first digits, then all second ones."""
    shifted = raw.unsqueeze(1) * raw.new_tensor(POWERS_OF_3[:n_digits]).view(-1, 1)  # wraps at 256
    return (shifted.short() * 3 >> 8).byte().flatten(1)


def tq2_0(raw: Tensor) -> FileBlocks:
    return FileBlocks(planes(raw[:, :64], 2, 32) - 1, ones(raw), supers=fp16(raw[:, 64:]))


def iq2_xxs(raw: Tensor) -> FileBlocks:
    words = grid_codes.words_of_groups(raw[:, 2:].reshape(-1, 8, 8)[..., 4:])
    codes = raw[:, 2:].reshape(-1, 8, 8)[..., :4].flatten(1)
    signed = grid_codes.signed("IQ2_XXS", codes, grid_codes.even_signs(words))
    return FileBlocks(signed, odd(words >> 28 & 15).repeat_interleave(2, 1), supers=fp16(raw[:, :2]) * 0.125)


def iq2_xs(raw: Tensor) -> FileBlocks:
    codes = u16(raw[:, 2:66])
    signed = grid_codes.signed("IQ2_XS", codes & 511, grid_codes.eighth_sign(codes >> 9))
    return FileBlocks(signed, odd(planes(raw[:, 66:], 4, 1)), supers=fp16(raw[:, :2]) * 0.125)


def iq2_s(raw: Tensor) -> FileBlocks:
    codes = raw[:, 2:34].int() | planes(raw[:, 66:74], 2, 1).int() << 8
    signed = grid_codes.signed("IQ2_S", codes, raw[:, 34:66])
    return FileBlocks(signed, odd(planes(raw[:, 74:], 4, 1)), supers=fp16(raw[:, :2]) * 0.125)


def iq3_xxs(raw: Tensor) -> FileBlocks:
    words = grid_codes.words_of_groups(raw[:, 66:].reshape(-1, 8, 4))
    signed = grid_codes.signed("IQ3_XXS", raw[:, 2:66], grid_codes.even_signs(words))
    return FileBlocks(signed, odd(words >> 28 & 15).repeat_interleave(2, 1), supers=fp16(raw[:, :2]) * 0.25)


def iq3_s(raw: Tensor) -> FileBlocks:
    codes = raw[:, 2:66].int() | planes(raw[:, 66:74], 1, 1).int() << 8
    signed = grid_codes.signed("IQ3_S", codes, raw[:, 74:106])
    scales = odd(planes(raw[:, 106:], 4, 1)).repeat_interleave(2, 1)
    return FileBlocks(signed, scales, supers=fp16(raw[:, :2]))


def iq1_s(raw: Tensor) -> FileBlocks:
    words = u16(raw[:, 34:])  # [n, 8]
    high = words.unsqueeze(2) >> words.new_tensor([0, 3, 6, 9]) & 7
    codes = raw[:, 2:34].int() | high.flatten(1) << 8
    shifted = grid_codes.shifted(codes, (words >> 15).repeat_interleave(4, 1))
    return FileBlocks(shifted, odd(words >> 12 & 7).repeat_interleave(2, 1), supers=fp16(raw[:, :2]) * 0.125)


def iq1_m(raw: Tensor) -> FileBlocks:
    """The fp16 scale is the top nibbles of four words."""
    words, nibbles = u16(raw[:, 48:]), planes(raw[:, 32:48], 4, 1)
    top = words >> 12
    scale = torch.stack((top[:, 0] | top[:, 1] << 4, top[:, 2] | top[:, 3] << 4), 1).byte()
    factors = words.unsqueeze(2) >> words.new_tensor([0, 3, 6, 9]) & 7
    codes = raw[:, :32].int() | (nibbles & 7).int() << 8
    return FileBlocks(grid_codes.shifted(codes, nibbles >> 3), odd(factors.flatten(1)), supers=fp16(scale) * 0.125)


def halves(raw: Tensor) -> Tensor:
    """uint8 [n, 2 k] -> float16 [n, k]"""
    return words(raw.contiguous(), torch.float16)


def odd(factors: Tensor) -> Tensor:
    return (2 * factors + 1).byte()


def ones(raw: Tensor) -> Tensor:
    return raw.new_ones(len(raw), 16)


UNPACKERS: dict[str, Callable[[Tensor], FileBlocks]] = {
    "Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0, "IQ4_NL": q4_0, "MXFP4": mxfp4,
    "NVFP4": nvfp4, "Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "Q8_K": q8_k,
    "IQ4_XS": iq4_xs, "TQ1_0": tq1_0, "TQ2_0": tq2_0, "IQ2_XXS": iq2_xxs, "IQ2_XS": iq2_xs, "IQ2_S": iq2_s,
    "IQ3_XXS": iq3_xxs, "IQ3_S": iq3_s, "IQ1_S": iq1_s, "IQ1_M": iq1_m,
    "INT2_G64": affine_of_64(2), "INT4_G64": affine_of_64(4), "INT5_G64": affine_of_64(5),
    **dict.fromkeys(("INT4_ZP_G32", "INT4_ZP_G128"), zero_point_of_4),
}  # fmt: skip
