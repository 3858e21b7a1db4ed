"""The token that a device draws is the one that the host's chain draws."""

import random

import numpy as np
import pytest
import torch
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.gpu.logits import AdjustTensors, FoundCandidates, draw_next, finish, logits_of, take_drawn
from localrun.backends.gpu.step_tensors import DRAW, fill_draws
from localrun.ops.interface import LogitAdjust
from localrun.ops.sampling import Draw, choose

DEVICE = EmulatedDevice(seed=3)
ROWS = 16


def drawn(rows: torch.Tensor, draws: list[Draw]) -> tuple[list[int], list[int]]:
    """By the device, and by the host's chain on the same candidates; -1 where they do not decide."""
    room, vocab = rows.clone(), rows.shape[1]
    found, adjust = FoundCandidates(len(rows), DEVICE), AdjustTensors(len(rows), DEVICE)
    adjust.fill([LogitAdjust(temperature=draw.temperature) for draw in draws], len(rows))
    of_draws = np.zeros(len(rows), DRAW)
    fill_draws(of_draws, draws)
    launches = finish(DEVICE, room, adjust, found, len(rows))
    for launch in (*launches, draw_next(DEVICE, torch.from_numpy(of_draws.view(np.int32)), found, len(rows), vocab)):
        launch()
    arrival = found.begin(len(rows))
    logits = logits_of(arrival, room, len(room))
    expected = []
    for draw in draws:
        given = logits.top_ids[draw.row], logits.top_values[draw.row], float(logits.logsumexp[draw.row])
        token = choose(*given, logits.top_ids.shape[1] == vocab, draw) if draw.temperature > 0 else int(given[0][0])
        expected.append(-1 if token is None else token)
    return arrival.wait()[:, -1].tolist(), expected


@pytest.mark.parametrize("vocab", [1, 7, 255, 256, 3000])
@pytest.mark.parametrize("seed", range(3))
def test_by_every_setting(vocab: int, seed: int) -> None:
    dice = random.Random(seed)
    rows = dice.choice((0.3, 1, 4)) * torch.randn(ROWS, vocab, generator=torch.Generator().manual_seed(seed))
    draws = [
        Draw(
            row,
            dice.choice((0, 1, 5, 40, 256, 300)),
            dice.choice((0.0, 0.5, 1.0, 1.75)),
            dice.choice((1.0, 0.9375, 0.5, 0.0)),
            dice.choice((0.0, 0.0625, 0.5, 1.0)),
            dice.choice((0.0, dice.random(), 1 - 2**-53)),
        )
        for row in range(ROWS)
    ]
    found, expected = drawn(rows, draws)
    assert found == expected
    assert vocab < 256 or len({*found}) > 5


def test_candidates_that_do_not_decide() -> None:
    flat = torch.zeros(4, 3000)
    draws = [Draw(0, 0, 1.0, 1.0, 0.0, 0.5), Draw(1, 0, 1.0, 0.9, 0.0, 0.0), Draw(2, 0, 1.0, 1.0, 0.5, 0.0)]
    found, expected = drawn(flat, [*draws, Draw(3, 300, 1.0, 1.0, 0.0, 0.0)])
    assert found == expected == [-1, -1, -1, -1]


def test_what_was_drawn_is_taken() -> None:
    found, ids = FoundCandidates(4, DEVICE), torch.full((4,), 9, dtype=torch.int32)
    found.on_device[:, -1] = torch.tensor([5, -1, 7, 8])
    take_drawn(DEVICE, found, ids[:3])()
    assert ids.tolist() == [5, 0, 7, 9]
