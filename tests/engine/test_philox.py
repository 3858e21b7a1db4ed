"""Philox4x32-10 against the known answers that its authors publish with Random123."""

import numpy as np
import pytest

from localrun.engine.philox import MANY, philox, uniform, uniforms

KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]) -> None:
    assert philox(counter, key) == expected


def test_uniform_fills_the_unit_interval_evenly() -> None:
    draws = np.array([uniform(7, position) for position in range(20_000)])
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts, _ = np.histogram(draws, bins=50, range=(0, 1))
    chi_squared = ((counts - 400) ** 2 / 400).sum()
    assert chi_squared < 85.4  # 99.9 % of 49 degrees of freedom


def test_seed_and_position_decide_alone() -> None:
    assert uniform(1, 5) == uniform(1, 5)
    assert len({uniform(seed, position) for seed in (0, 1, 2**40) for position in (0, 1, 2**33)}) == 9


@pytest.mark.parametrize("n", [0, 1, MANY - 1, MANY, 25])
def test_many_at_once_are_those_one_by_one(n: int) -> None:
    pairs = [(seed, position) for seed in (0, 1, 7, 2**40, 2**64 - 1) for position in (0, 1, 2, 99_999, 2**33)][:n]
    found = uniforms([seed for seed, _ in pairs], [position for _, position in pairs])
    assert found == [uniform(*pair) for pair in pairs]
