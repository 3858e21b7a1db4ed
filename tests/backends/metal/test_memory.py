"""How much of a Mac its GPU may take."""

import pytest

from localrun.backends.metal.memory import gpu_memory, usual_limit
from localrun.base.machine import Memory

GIB = 1 << 30


@pytest.mark.parametrize(("total", "usual"), [(8, 5.33), (16, 10.67), (36, 24), (64, 48), (128, 96)])
def test_the_part_that_macos_lets_a_gpu_wire(total: int, usual: float) -> None:
    assert usual_limit(total * GIB) / GIB == pytest.approx(usual, abs=0.01)


@pytest.mark.parametrize(
    ("total", "free", "wired", "in_use", "most", "now"),
    [
        (16, 12, 11, 0, 11, 11),  # as macOS says
        (16, 12, 11, 4, 11, 7),  # less what this process has of it
        (16, 6, 11, 0, 11, 5.5),  # other programs have the rest, and macOS needs room to move
        (16, 15, 16, 0, 14, 14),  # somebody gave the GPU everything: the system keeps its part
        (64, 60, 64, 0, 56, 56),
        (8, 0.25, 5, 0, 5, 0),
    ],
)
def test_the_least_of_three_limits_counts(
    total: float, free: float, wired: float, in_use: float, most: float, now: float
) -> None:
    found = gpu_memory(Memory(int(total * GIB), int(free * GIB)), int(wired * GIB), int(in_use * GIB))
    assert (found.total / GIB, found.available / GIB) == (most, now)
