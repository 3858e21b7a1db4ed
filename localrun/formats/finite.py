"""Numbers that are none: NaN and infinity in weights, found by the bits that every type keeps its range in.

Of quantised blocks only the scales can be anything but finite, so that is a few bytes of a block to look at.
"""

from types import MappingProxyType

import numpy as np

from localrun.formats.quant import QUANT_TYPES

_F16, _BF16, _F32, _F64 = 0x7C00, 0x7F80, 0x7F80_0000, 0x7FF0_0000_0000_0000  # exponents of nothing but ones
_PLAIN = MappingProxyType(
    {
        "F16": ("<u2", _F16),
        "BF16": ("<u2", _BF16),
        "F32": ("<u4", _F32),
        "F8_E4M3": ("u1", 0x7F),
        "F8_E5M2": ("u1", 0x7C),
        "F8_E8M0": ("u1", 0xFF),
    }
)
_F16_SCALES = MappingProxyType(  # at which bytes of a block
    {
        **dict.fromkeys(
            ("Q1_0", "Q2_0", "Q4_0", "Q5_0", "Q8_0", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"), (0,)
        ),
        **dict.fromkeys(("IQ4_NL", "IQ4_XS"), (0,)),
        **dict.fromkeys(("Q4_1", "Q5_1", "Q4_K", "Q5_K"), (0, 2)),
        "Q2_K": (80, 82),
        "Q3_K": (108,),
        "Q6_K": (208,),
        "TQ1_0": (52,),
        "TQ2_0": (64,),
        **dict.fromkeys(("INT4_ZP_G32", "INT4_ZP_G128", "INT8_ZP_G32"), (0,)),
        **dict.fromkeys(("INT2_G64", "INT4_G64", "INT5_G64", "INT6_G32", "INT6_G64", "INT8_G32", "INT8_G64"), (0, 2)),
    }
)
_MXFP4_LARGEST = 0xFD  # the exponent from which on 12, the largest number, overflows
_E4M3 = 0x7F  # no number
_F8_LARGEST = 127 + 119  # the exponent of a scale from which on 448, the largest number of E4M3, overflows
_F32_LARGEST = 127 + 119  # of scales and minima in f32 from which on 255 times one, and another, may overflow
_F32_SCALES = MappingProxyType(
    {
        "NF4_G64": (0,),
        **dict.fromkeys(("INT4_F32_G32", "INT8_F32_G32"), (0, 4)),
        **dict.fromkeys(("INT4_SYM_F32_G32", "INT4_SYM_F32_G128", "INT8_SYM_F32_G32", "INT8_SYM_F32_G128"), (0,)),
        **dict.fromkeys(("INT4_ZP_F32_G32", "INT8_ZP_F32_G32"), (0,)),
    }
)
_STEP = 1 << 17  # numbers looked at at a time: what is made of them stays in the cache


def first_not_finite(qtype: str, raw: np.ndarray) -> int | None:
    """The first block of `raw` (flat uint8) with a NaN or an infinity in it; None where all is well."""
    block_bytes = QUANT_TYPES[qtype].block_bytes
    if qtype == "F64":  # what is too large for f32 becomes infinite
        return _first(raw.view("<u8"), _F64, (1023 + 127) << 52)
    if qtype in _PLAIN:
        dtype, mask = _PLAIN[qtype]
        return _first(raw.view(dtype), mask)
    if qtype in _F32_SCALES:
        scales = (_at(raw, block_bytes, at, "<u4") for at in _F32_SCALES[qtype])
        return _earliest(*(_first(each, _F32, _F32_LARGEST << 23) for each in scales))
    if qtype == "Q8_K":
        return _first(_at(raw, block_bytes, 0, "<u4"), _F32, (127 + 121) << 23)  # times 127 it overflows
    if qtype == "MXFP4":
        return _first(_at(raw, block_bytes, 0, "u1"), 0xFF, _MXFP4_LARGEST)
    if qtype in ("F8_G128", "MXFP8"):
        return _first_of_f8(raw.reshape(-1, block_bytes), qtype)
    if qtype == "IQ1_M":  # its scale lies in the upper four bits of four numbers
        parts = (
            _at(raw, block_bytes, 48 + 2 * part, "<u2") >> np.uint16(12) << np.uint16(4 * part) for part in range(4)
        )
        return _first(np.bitwise_or.reduce(list(parts)), _F16)
    return _earliest(*(_first(_at(raw, block_bytes, at, "<u2"), _F16) for at in _F16_SCALES.get(qtype, ())))


def _first_of_f8(blocks: np.ndarray, qtype: str) -> int | None:
    """First bad block of E4M3 codes after a scale, uint8 [n, bytes]."""
    if qtype == "MXFP8":
        scale, n_codes = _first(_at(blocks, blocks.shape[1], 0, "u1"), 0xFF, _F8_LARGEST), 32
    else:
        scale, n_codes = _first(_at(blocks, blocks.shape[1], 0, "<u4"), _F32, _F8_LARGEST << 23), 128
    code = _first(np.ascontiguousarray(blocks[:, -n_codes:]).ravel(), _E4M3)
    return _earliest(scale, None if code is None else code // n_codes)


def _earliest(*found: int | None) -> int | None:
    return min((block for block in found if block is not None), default=None)


def _at(raw: np.ndarray, block_bytes: int, at: int, dtype: str) -> np.ndarray:
    """One number of every block, without copying."""
    n_blocks = raw.nbytes // block_bytes
    return np.ndarray((n_blocks,), dtype, raw, at, (block_bytes,)) if n_blocks else np.empty(0, dtype)


def _first(bits: np.ndarray, mask: int, least: int = 0) -> int | None:
    """The first number whose masked bits are `least` or more; by default all of the mask."""
    kept, limit = bits.dtype.type(mask), least or mask
    for start in range(0, bits.size, _STEP):
        found = bits[start : start + _STEP] & kept
        if found.max() >= limit:
            return start + int((found >= limit).argmax())
    return None
