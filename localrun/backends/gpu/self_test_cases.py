"""The cases of gates and of logits, for every platform's self-test."""

from __future__ import annotations

import torch

from localrun.backends.gpu import elementwise, logits
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.synthetic import between_ones, far
from localrun.ops.interface import LogitAdjust
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
