"""The cases of gates and of logits, for every platform's self-test."""

from __future__ import annotations

import numpy as np
import torch

from localrun.backends.gpu import elementwise, logits
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.step_tensors import DRAW, fill_draws
from localrun.backends.gpu.synthetic import between_ones, far
from localrun.ops.interface import LogitAdjust
from localrun.ops.sampling import Draw, choose
from localrun.ops.token_counts import TokenCounts


def gates(device: Device) -> str:
    """x · sigmoid(gate), gelu(gate) · x, x · 3."""
    x, gate, wide = between_ones(2, 300), 8 * between_ones(2, 300), between_ones(2, 400)
    there = [tensor.to(device.torch_device) for tensor in (x, gate, wide)]
    outs = [torch.zeros(2, 300, device=device.torch_device) for _ in range(3)]
    elementwise.sigmoid_mul(device, there[0], there[1], outs[0])()
    elementwise.gelu_mul(device, there[1], there[2], 60, outs[1])()
    elementwise.scale(device, there[0], 3.0, outs[2])()
    gelu = torch.nn.functional.gelu(gate.double(), approximate="tanh")
    return (
        far("sigmoid", outs[0], x * gate.double().sigmoid())
        or far("gelu", outs[1], gelu * wide[:, 60:360])
        or far("scale", outs[2], 3.0 * x.double())
    )


def ranking(device: Device) -> str:
    """Two rows of logits in two parts, one with penalties and a bias."""
    raw = 9 * between_ones(2, 5000)
    counts = TokenCounts([9, 7, 9])
    change = LogitAdjust(counts, counts, repeat=1.5, presence=0.5, frequency=0.25, bias={4: 30.0}, temperature=0.5)
    adjust, found = logits.AdjustTensors(2, device), logits.FoundCandidates(2, device)
    adjust.fill((None, change), 2)
    rows = raw.to(device.torch_device, copy=True)
    for launch in logits.finish(device, rows, adjust, found, 2):
        launch()
    got = found.read(rows)

    exact = raw.double()
    for token, count in counts.items():
        repeated = exact[1, token] / 1.5 if raw[1, token] > 0 else exact[1, token] * 1.5
        exact[1, token] = repeated - 0.5 - 0.25 * count
    exact[1, 4] += 30.0
    best = rows.cpu().sort(descending=True, stable=True).indices[:, : logits.BEST]
    sums = torch.stack((exact[0], exact[1] / 0.5)).logsumexp(-1)
    if not (got.finite.all() and torch.equal(torch.from_numpy(got.top_ids).long(), best)):
        return "other candidates"
    return far("logits", rows, exact) or far("logsumexp", torch.from_numpy(got.logsumexp), sums)


def gathering(device: Device) -> str:
    """Rows in another order, of which one is wanted twice and one has no place."""
    x, where = between_ones(3, 300), device.torch_device
    out = torch.zeros(4, 300, device=where)
    rows, places = (torch.tensor(numbers, dtype=torch.int32) for numbers in ((2, 0, 2, 1), (0, 3, 1, -1)))
    elementwise.gather_rows(device, x.to(where), rows.to(where), places.to(where), out)()
    return "" if torch.equal(out.cpu(), torch.stack((x[2], x[2], torch.zeros(300), x[0]))) else "other rows"


def drawing(device: Device) -> str:
    """The next token of rows with settings of their own, one of which its candidates do not decide, and all taken."""
    raw, where = 9 * between_ones(5, 3000), device.torch_device
    raw[4] = 0.0
    settings = ((0, 0.0, 1.0, 0.0, 0.0), (40, 0.8, 0.95, 0.05, 0.7), (5, 1.5, 0.5, 0.0, 0.99), (0, 0.5, 1.0, 0.25, 0.5))
    draws = [Draw(row, *each) for row, each in enumerate((*settings, (0, 1.0, 1.0, 0.0, 0.5)))]
    found, adjust = logits.FoundCandidates(5, device), logits.AdjustTensors(5, device)
    adjust.fill([LogitAdjust(temperature=draw.temperature) for draw in draws], 5)
    host, ids = np.zeros(5, DRAW), torch.full((5,), 9, dtype=torch.int32, device=where)
    fill_draws(host, draws)
    on_device, rows = torch.from_numpy(host.view(np.int32)).to(where), raw.to(where, copy=True)
    launches = logits.finish(device, rows, adjust, found, 5)
    drawn = logits.draw_next(device, on_device, found, 5, raw.shape[1]), logits.take_drawn(device, found, ids[:4])
    for launch in (*launches, *drawn):
        launch()
    got = found.read(rows)
    wanted = [
        choose(got.top_ids[d.row], got.top_values[d.row], float(got.logsumexp[d.row]), False, d) for d in draws[1:]
    ]
    expected = [int(got.top_ids[0, 0]), *(-1 if token is None else token for token in wanted)]
    there = found.on_device[:5, -1].tolist()
    if expected[4] != -1 or there != expected:
        return f"drew {there}, not {expected}"
    return "" if ids.tolist() == [*expected[:4], 9] else "other tokens are taken"
