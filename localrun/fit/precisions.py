"""Bits per weight of each precision, with scales and the usual mix of types."""

import re

# Measured over a whole Llama 3.1 8B: published with llama.cpp's quantize tool, 2026-10.
_MEASURED = {
    "IQ1_S": 2.00,
    "IQ1_M": 2.15,
    "IQ2_XXS": 2.38,
    "IQ2_XS": 2.59,
    "IQ2_S": 2.74,
    "IQ2_M": 2.93,
    "IQ3_XXS": 3.25,
    "IQ3_XS": 3.50,
    "IQ3_S": 3.66,
    "IQ3_M": 3.76,
    "IQ4_XS": 4.46,
    "IQ4_NL": 4.68,
    "Q2_K_S": 2.97,
    "Q2_K": 3.16,
    "Q3_K_S": 3.64,
    "Q3_K_M": 4.00,
    "Q3_K_L": 4.30,
    "Q4_K_S": 4.67,
    "Q4_K_M": 4.89,
    "Q5_K_S": 5.57,
    "Q5_K_M": 5.70,
    "Q6_K": 6.56,
    "Q8_0": 8.50,
    "Q4_0": 4.5,
    "Q4_1": 5.0,
    "Q5_0": 5.5,
    "Q5_1": 6.0,
    "MXFP4": 4.25,
    "NVFP4": 4.5,
}
_OWN = {"INT8": 8.5, "INT4": 4.5, "INT2": 2.625}  # whole numbers of that many bits, and what scales them by groups
_EXTREME_BITS = 3.2  # up to the mixes called Q2_K
_DIGITS = re.compile(r"\d+")


def bits_of(precision: str) -> float:
    """Bits per weight; for an unknown name the first number in it, and half a bit for scales."""
    name = precision.upper().removeprefix("UD-")
    if name in _MEASURED or name in _OWN:
        return _MEASURED.get(name) or _OWN[name]
    digits = _DIGITS.search(name)
    bits = int(digits[0]) if digits else 16
    return float(bits) if "F" in name.partition("_")[0] or not digits else bits + 0.5


def is_extreme(precision: str) -> bool:
    """Whether a precision has about two bits per weight or fewer, which makes answers visibly worse."""
    return bits_of(precision) < _EXTREME_BITS
