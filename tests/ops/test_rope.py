"""Angles: against the C library's cosine, and the same bits alone, kept and among others."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.ops.rope import AHEAD, RopeKind

KIND = RopeKind.of(1e6, 128, None, 1.25)


@pytest.mark.parametrize("position", [0, 1, AHEAD - 1, AHEAD, 4095, 1_000_000])
def test_rope_angles_match_the_definition(position: int) -> None:
    cos, sin = KIND.cos_sin([position])
    assert cos.shape == sin.shape == (1, 64)
    for pair in range(64):
        angle = position * 1e6 ** (-2 * pair / 128)
        assert cos[0, pair].item() == pytest.approx(1.25 * math.cos(angle), abs=2e-7)
        assert sin[0, pair].item() == pytest.approx(1.25 * math.sin(angle), abs=2e-7)


@given(st.lists(st.integers(0, 300_000), min_size=2, max_size=9))
def test_a_position_alone_has_the_bits_it_has_among_others(positions: list[int]) -> None:
    together = KIND.cos_sin(positions)
    for row, position in enumerate(positions):
        alone = KIND.cos_sin([position])
        assert all(np.array_equal(a[0], b[row]) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("axes", [None, [0, 1, 2, 0] * 16])
@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=9))
def test_text_turns_alike_where_rows_have_an_angle_an_axis(axes: list[int] | None, positions: list[int]) -> None:
    kind = RopeKind.of(1e6, 128, None, 1.25, axes)
    found = kind.cos_sin(np.array([positions] * 3).T)
    assert all(np.array_equal(a, b) for a, b in zip(found, KIND.cos_sin(positions), strict=True))


def test_a_pair_turns_by_the_angle_of_its_axis() -> None:
    kind = RopeKind.of(1e4, 8, None, 1.0, [0, 1, 2, 1])
    cos, _ = kind.cos_sin(np.array([[3, 50, 700]]))
    alone = [kind.cos_sin([angle])[0][0, pair] for pair, angle in enumerate((3, 50, 700, 50))]
    assert cos[0].tolist() == alone


def test_kinds_do_not_share_what_is_kept() -> None:
    other = RopeKind.of(1e4, 128, None, 1.0)
    assert not np.array_equal(KIND.cos_sin([70])[0], other.cos_sin([70])[0])
    assert np.array_equal(other.cos_sin([70])[0], other.cos_sin([70, 3])[0][:1])
