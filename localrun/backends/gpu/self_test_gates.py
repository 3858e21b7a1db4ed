"""The case of gates and scales, for every platform's self-test."""

from __future__ import annotations

import torch

from localrun.backends.gpu import elementwise
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.synthetic import between_ones, far


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
