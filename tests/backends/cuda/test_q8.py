"""Activations in 8 bits: nearest codes, padding of zeros, and nothing hidden that is no number."""

import pytest
import torch

from localrun.backends.gpu.q8 import Q8

CPU = torch.device("cpu")


@pytest.mark.parametrize("n_cols", [1, 32, 64, 100, 320])
def test_codes_are_the_nearest(n_cols: int) -> None:
    x = torch.randn(5, n_cols, generator=torch.Generator().manual_seed(n_cols))
    q8 = Q8.of(n_cols, 5, CPU)
    q8.quantize(x)
    found, greatest = q8.decoded(n_cols), x.abs().amax()
    assert (found - x).abs().max() <= greatest / 127 * 0.501
    assert q8.codes.shape[1] % 64 == 0
    assert q8.groups.shape[1] == 8
    assert int(q8.codes.int().sum()) == int(q8.groups[..., 1].sum())
    assert not q8.groups[:, 5:].any()


def test_columns_stand_in_the_order_of_lanes() -> None:
    q8 = Q8.of(64, 1, CPU)
    x = torch.arange(1.0, 65.0)[None]
    x[0, 31] = x[0, 63] = 127.0  # scale 1: codes are the numbers
    q8.quantize(x)
    assert [int(q8.codes[0, 16 * t + 4 * i + j]) for t, i, j in [(0, 0, 0), (1, 0, 2), (2, 3, 1), (3, 1, 0)]] == [
        1, 7, 58, 29,
    ]  # fmt: skip


def test_halves_go_to_even_and_next_to_nothing_to_zero() -> None:
    q8 = Q8.of(64, 2, CPU)
    x = torch.zeros(2, 64)
    x[0, :4] = torch.tensor([127.0, 0.5, 1.5, -2.5])
    x[1, 40] = 1e-38
    q8.quantize(x)
    assert q8.decoded(64)[0, :4].tolist() == [127.0, 0.0, 2.0, -2.0]
    assert not q8.decoded(64)[1].any()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_broken_group_has_no_finite_number(value: float) -> None:
    q8 = Q8.of(96, 2, CPU)
    x = torch.ones(2, 96)
    x[1, 40] = value
    q8.quantize(x)
    broken = ~q8.decoded(96).isfinite()
    assert broken[1, 32:64].all()
    assert int(broken.sum()) == 32
