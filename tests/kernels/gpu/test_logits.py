"""The kernels of logits beside the reference."""

import numpy as np
import pytest
import torch
from localrun_testing.gpu_platforms import PLATFORMS, Platform

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.logits import AdjustTensors, FoundCandidates, finish
from localrun.backends.reference.logits import finish_logits
from localrun.ops.interface import LogitAdjust, Logits
from localrun.ops.token_counts import TokenCounts

INFINITY, NAN = float("inf"), float("nan")


def run(
    platform: Platform,
    rows: torch.Tensor,
    adjust: tuple[LogitAdjust | None, ...] = (),
    scale: float = 1.0,
    softcap: float | None = None,
    device: Device | None = None,
) -> Logits:
    """What kernels find, in a bucket of one row more."""
    n, room = len(rows), torch.cat((rows, rows[:1]))
    changes, found = AdjustTensors(n + 1, platform.usual), FoundCandidates(n + 1, platform.usual)
    changes.fill(adjust, n)
    launches = finish(device or platform.usual, room, changes, found, n + 1, scale=scale, softcap=softcap)
    for launch in launches:
        launch()
    return found.read(room[:n])


def agree(got: Logits, want: Logits, *, exact: bool = True) -> None:
    rows, wanted = torch.as_tensor(got.rows), torch.as_tensor(want.rows)
    if exact:
        assert torch.equal(rows.nan_to_num(77.0), wanted.nan_to_num(77.0))
        assert np.array_equal(got.top_values, want.top_values, equal_nan=True)
        assert np.array_equal(got.top_ids, want.top_ids)
    else:
        torch.testing.assert_close(rows, wanted, rtol=3e-7, atol=1e-6)
        np.testing.assert_allclose(got.top_values, want.top_values, rtol=3e-7)
    assert np.array_equal(got.finite, want.finite)
    np.testing.assert_allclose(got.logsumexp, want.logsumexp, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("vocab", [1, 2, 255, 256, 257, 4096, 4097, 32000])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_the_best_of_vocabularies_of_every_size(platform: Platform, vocab: int) -> None:
    rows = torch.randn(2, vocab, generator=torch.Generator().manual_seed(vocab))
    agree(run(platform, rows), finish_logits(rows.clone(), ()))


@pytest.mark.parametrize("vocab", [128256, 151936, 262144])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_the_best_of_large_vocabularies(platform: Platform, vocab: int) -> None:
    rows = 5 * torch.randn(1, vocab, generator=torch.Generator().manual_seed(vocab))
    agree(run(platform, rows), finish_logits(rows.clone(), ()))


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_equal_logits_go_by_lower_id(platform: Platform) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(-3, 4, (3, 9000), generator=generator).float()
    rows[1] = 0.25
    rows[2, ::2] = -0.0
    agree(run(platform, rows), finish_logits(rows.clone(), ()))


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_rows_with_next_to_nothing_left(platform: Platform) -> None:
    rows = torch.full((3, 5000), -INFINITY)
    rows[0, 4999], rows[1, 17] = -3.0, 80.0
    got, want = run(platform, rows), finish_logits(rows.clone(), ())
    agree(got, want)
    assert got.argmax.tolist() == [4999, 17, 0]


@pytest.mark.parametrize("broken", [NAN, INFINITY, -INFINITY])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_what_is_not_finite_shows_and_stays(platform: Platform, broken: float) -> None:
    rows = torch.randn(2, 5000)
    rows[1, 4500] = broken
    want = rows.clone()
    got = run(platform, rows, scale=0.5, softcap=30.0)
    assert got.finite.tolist() == [True, False]
    assert torch.equal(torch.as_tensor(got.rows)[1, 4500:4501].nan_to_num(7.0), want[1, 4500:4501].nan_to_num(7.0))


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_scale_and_softcap(platform: Platform) -> None:
    rows = 40 * torch.randn(2, 700)
    capped = 30.0 * torch.tanh(rows * 0.25 / 30.0)
    agree(run(platform, rows, scale=0.25, softcap=30.0), finish_logits(capped, ()), exact=False)


def changes(n: int, *, seed: int, temperature: float) -> LogitAdjust:
    ids = np.random.default_rng(seed).permutation(n).tolist()
    return LogitAdjust(
        seen=TokenCounts(ids[:200]),
        counts=TokenCounts(ids[100:250] + ids[150:250]),
        repeat=1.3,
        presence=0.7,
        frequency=0.11,
        bias={token: (token % 7 - 3) * 1.7 for token in ids[190:230]},
        temperature=temperature,
    )


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_penalties_and_bias_by_id(platform: Platform) -> None:
    rows = 3 * torch.randn(5, 5000, generator=torch.Generator().manual_seed(4))
    adjust = (
        changes(5000, seed=1, temperature=0.3),
        None,
        LogitAdjust(bias={4999: -100.0, 0: 100.0}, temperature=0.0),
        LogitAdjust(counts=TokenCounts([5, 5, 6]), frequency=-0.5),
        changes(5000, seed=2, temperature=2.5),
    )
    agree(run(platform, rows, adjust), finish_logits(rows.clone(), adjust))


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_one_step_after_another(platform: Platform) -> None:
    """Launches that are bound once read what each step brings."""
    room = torch.empty(2, 3000)
    tensors, found = AdjustTensors(2, platform.usual), FoundCandidates(2, platform.usual)
    launches = finish(platform.usual, room, tensors, found, 2)
    many = LogitAdjust(seen=TokenCounts(range(2900)), repeat=1.5)
    for adjust in ((None, many), (), (changes(3000, seed=3, temperature=1.0), None)):
        rows = torch.randn(2, 3000)
        room.copy_(rows)
        if tensors.fill(adjust, 2):  # entries that there was no room for
            launches = finish(platform.usual, room, tensors, found, 2)
        for launch in launches:
            launch()
        agree(found.read(room), finish_logits(rows, adjust))


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_a_row_is_the_same_beside_any_others(platform: Platform) -> None:
    rows, adjust = torch.randn(3, 5000), tuple(changes(5000, seed=row, temperature=0.7) for row in range(3))
    together = run(platform, rows, adjust)
    for row in range(3):
        alone = run(platform, rows[row : row + 1], adjust[row : row + 1])
        assert np.array_equal(alone.top_values[0], together.top_values[row])
        assert alone.logsumexp[0] == together.logsumexp[row]


@pytest.mark.parametrize(("seed", "poison"), [(1, 0x00), (2, 0x3C)])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_the_order_of_threads_does_not_matter(platform: Platform, seed: int, poison: int) -> None:
    rows, adjust = torch.randn(1, 5000), (changes(5000, seed=0, temperature=0.7),)
    a, b = run(platform, rows, adjust), run(platform, rows, adjust, device=platform.device(seed=seed, poison=poison))
    agree(a, b)
    assert a.logsumexp[0] == b.logsumexp[0]
