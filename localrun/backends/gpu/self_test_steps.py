"""Steps of made-up texts, and what attention gives of them: what the self-tests of all platforms compare with."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape, StepTensors
from localrun.ops.interface import SequenceInput, StepInput

HALF = 16  # pairs that turn


def step_of(lengths: list[int], n: int, device: Device, *, rings: bool = False) -> StepTensors:
    """The last n rows of every text, whose blocks are numbered from its end; 32 dims turn.

    rings: keys and values are there in 16 bits too, in blocks of the same numbers.
    """
    sequences: list[SequenceInput] = []
    positions: list[int] = []
    row_sequence: list[int] = []
    taken = 0
    for number, length in enumerate(lengths):
        blocks = list(range(taken, taken + -(-length // 64)))[::-1]
        sequences.append(SequenceInput(length, (blocks,), (0,), ring=(blocks,) if rings else ()))
        positions += range(length - n, length)
        row_sequence += [number] * n
        taken += len(blocks)
    angles = np.outer(positions, 0.5 ** np.arange(HALF)).astype(np.float32)
    rows = len(positions)
    step = StepInput([0] * rows, positions, row_sequence, sequences, [0], cos_sin=[(np.cos(angles), np.sin(angles))])
    buffer = StepBuffer(StepShape(1, (HALF,), sinks=False, rings=rings), rows, taken, device)
    buffer.fill(step, rows)
    return buffer.tensors(rows)


def turned(x: Tensor, weight: Tensor, eps: float, step: StepTensors) -> Tensor:
    """Heads [rows, heads, dim] after their norm and turned by their positions, in double precision."""
    wide = x.double()
    wide = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
    cos, sin = (angle.cpu().double().unsqueeze(1) for angle in (step.cos[0], step.sin[0]))
    first, second = wide[..., :HALF], wide[..., HALF : 2 * HALF]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, wide[..., 2 * HALF :]), -1)


def attended(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Attention of the last rows of a text: q [rows, heads, dim], keys and values [tokens, KV heads, dim] in order."""
    n, heads, _ = q.shape
    k, v = (x.double().repeat_interleave(heads // x.shape[1], 1) for x in (keys, values))
    scores = torch.einsum("rhd,thd->rht", q.double(), k) * scale
    unseen = torch.arange(len(k)) > torch.arange(len(k) - n, len(k)).view(n, 1, 1)
    return torch.einsum("rht,thd->rhd", scores.masked_fill(unseen, -torch.inf).softmax(-1), v).flatten(1)
