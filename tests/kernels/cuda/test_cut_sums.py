"""Sums that tensor cores cut off: the emulator beside exact arithmetic, and attention by it, right and wrong."""

from collections.abc import Callable
from fractions import Fraction
from math import floor, frexp

import numpy as np
import pytest
import torch
from localrun_testing import fragments
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.fragments import split

from localrun.backends.cuda.self_test import ATTENTION, CLOSE_WHEN_CUT
from localrun.backends.cuda.source import folder
from localrun.backends.gpu.device import Device

ERRORS: dict[str, Callable[[Device], float]] = {
    "few": lambda device: ATTENTION.error(device, 540, 3),
    "many": lambda device: ATTENTION.error(device, 90, 40),
}
EXTRA_BITS = (0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow))
EVERY_ROUNDING = (None, *EXTRA_BITS)


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, extra_bits: int, arch: int = 80) -> np.ndarray:
    """c + a · bᵀ of one instruction: f16 [16, 16] and [8, 16], f32 [16, 8]."""
    words = [
        torch.from_numpy(np.ascontiguousarray(split(x.astype(np.float16).view(np.int16), held)).view(np.int32))
        for x, held in ((a, fragments.F16_A), (b, fragments.F16_B))
    ]
    out = torch.from_numpy(np.ascontiguousarray(split(c.astype(np.float32), fragments.SUMS)))
    kernel = EmulatedDevice(arch, extra_bits=extra_bits).kernel("intrinsics.cu", "check_mma_f16")
    kernel.bind((1, 1, 1), (32, 1, 1), *words, out)()
    return out.numpy()


def first_sum(addends: list[float], start: float, extra_bits: int) -> float:
    """start + Σ addends, as products with one."""
    a, b, c = np.zeros((16, 16)), np.ones((8, 16)), np.full((16, 8), start)
    a[:, : len(addends)] = addends
    return float(product(a, b, c, extra_bits)[0, 0])


def cut_off(x: Fraction, last: int) -> Fraction:
    """x without what is below the bit 2^last, towards zero."""
    whole = floor(abs(x) / Fraction(2) ** last)
    return (1 if x >= 0 else -1) * whole * Fraction(2) ** last


def exponent(x: Fraction) -> int:
    """e with 2^e <= |x| < 2^(e + 1); float has it exactly for numbers of few bits, and for others no less."""
    e = frexp(float(abs(x)))[1] - 1
    return e if Fraction(2) ** e <= abs(x) else e - 1


def exactly(a: np.ndarray, b: np.ndarray, c: float, extra_bits: int, unit: int) -> Fraction:
    """The chain of units in exact arithmetic."""
    total = Fraction(c)
    for k in range(0, len(a), unit):
        addends = [
            total,
            *(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[k:], b[k : k + unit], strict=False)),
        ]
        last = exponent(max(addends, key=abs)) - 23 - extra_bits
        total = sum((cut_off(addend, last) for addend in addends), Fraction(0))
        total = cut_off(total, exponent(total) - 23) if total else total
    return total


@pytest.mark.parametrize(("arch", "extra_bits"), [(75, 0), (80, 0), (80, 1), (80, 2)])
def test_sums_are_those_of_exact_arithmetic_cut_off(arch: int, extra_bits: int) -> None:
    rng = np.random.default_rng(extra_bits)
    a, b = (rng.standard_normal((n, 16)) * 2.0 ** rng.integers(-9, 5, (n, 16)) for n in (16, 8))
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = (rng.standard_normal((16, 8)) * 2.0 ** rng.integers(-12, 8, (16, 8))).astype(np.float32)
    unit = 4 << extra_bits
    want = [[float(exactly(a[i], b[j], float(c[i, j]), extra_bits, unit)) for j in range(8)] for i in range(16)]
    assert np.array_equal(product(a, b, c, extra_bits, arch), split(np.array(want, np.float32), fragments.SUMS))


@pytest.mark.parametrize(
    ("addends", "kept"),
    [
        ([2.0**-24] * 2, (0, 1, 1)),  # half a bit each: V100 and T4 drop both, A100 adds them
        ([2.0**-24 / 2] * 4, (0, 0, 1)),  # a quarter each: H100 adds them
        ([2.0**-23], (1, 1, 1)),
        ([2.0**-23 + 2.0**-24], (1, 1, 1)),  # and no sum is rounded up
    ],
)
def test_bits_that_generations_keep(addends: list[float], kept: tuple[int, int, int]) -> None:
    """The probes of the papers that kernels/emulator/warp.cpp names: addends to 1, in units of its last bit."""
    scale = 2.0**12  # halves have no numbers as small
    found = [first_sum([x * scale for x in addends], scale, bits) / scale for bits in (0, 1, 2)]
    assert found == [1 + n * 2.0**-23 for n in kept]


def test_what_is_no_number_stays_none() -> None:
    for bits in (0, 1, 2):
        assert first_sum([float("inf"), 1.0], 0.0, bits) == float("inf")
        assert first_sum([float("inf"), float("-inf")], 0.0, bits) != 0.0
        assert np.isnan(first_sum([float("nan")], 1.0, bits))
        assert first_sum([], 0.0, bits) == 0.0


@pytest.mark.parametrize("extra_bits", EVERY_ROUNDING)
@pytest.mark.parametrize("arch", [75, 80])
@pytest.mark.parametrize("case", ERRORS)
def test_attention_that_is_right_passes_with_room_to_spare(case: str, arch: int, extra_bits: int | None) -> None:
    assert ERRORS[case](EmulatedDevice(arch, extra_bits=extra_bits)) < CLOSE_WHEN_CUT / 2


SWAPPED = {
    "keys of a tile": (
        "few",
        "attention.cuh",
        "low[0], high[0], low[1], high[1], q0",
        "high[0], low[0], low[1], high[1], q0",
    ),
    "dims of a key": ("few", "attention.cuh", "s[tile], low[2], high[2], low[3]", "s[tile], low[3], high[2], low[2]"),
    "steps of a query": ("few", "attention.cuh", "[2 * run][lane], q1", "[2 * run + 1][lane], q1"),
    "keys of weights": (
        "few",
        "attention.cuh",
        "from.high[g][16 * step + 8 * i",
        "from.high[g][16 * step + 8 * (1 - i)",
    ),
    "values": ("many", "attention_tiles.cu", "16 * tile + 8 * (matrix % 2)", "16 * tile + 8 * (1 - matrix % 2)"),
}


@pytest.mark.parametrize("extra_bits", EVERY_ROUNDING)
@pytest.mark.parametrize("what", SWAPPED)
def test_a_swapped_fragment_fails_by_a_factor_of_a_hundred(what: str, extra_bits: int | None) -> None:
    case, file, old, new = SWAPPED[what]
    text = (folder() / file).read_text()
    assert old in text
    device = EmulatedDevice(replace={file: text.replace(old, new, 1)}, extra_bits=extra_bits)
    assert ERRORS[case](device) > 100 * CLOSE_WHEN_CUT


@pytest.mark.parametrize("extra_bits", EVERY_ROUNDING)
def test_queries_rounded_to_half_fail(extra_bits: int | None) -> None:
    """The smallest mistake there can be: the second half of each query is left out."""
    text = (folder() / "attention.cuh").read_text().replace("  lr_mma_f16(c, a, rest);\n", "", 1)
    device = EmulatedDevice(replace={"attention.cuh": text}, extra_bits=extra_bits)
    assert ERRORS["few"](device) > CLOSE_WHEN_CUT
