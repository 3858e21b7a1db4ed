"""A small case of each kernel that turns, stores or looks at keys and values."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from localrun.backends.cuda import attentions
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.made_up import between_ones, far
from localrun.backends.gpu.scratch import UNIT_TOKENS, partial_numbers
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape, StepTensors
from localrun.ops.instructions import Attention, RopeAppend
from localrun.ops.interface import CacheLayer, SequenceInput, StepInput

EPS = 1e-6
PLACE = CacheLayer(group=0, index=1, n_heads=4, n_kv_heads=2, head_dim=128)  # most models have heads of this size


def rope_append(device: Device) -> str:
    """Norms of heads, half of each turned, keys and values stored."""
    n, heads, dim = 3, PLACE.n_heads, PLACE.head_dim
    step = step_of([70], n, device)
    q, k, v = (between_ones(n, width * dim) + shift for width, shift in ((heads, 0), (2, 0.5), (2, 1)))
    weight = between_ones(dim)
    op = RopeAppend(q, k, v, 1, 0, "head", weight.to(device.torch_device), weight.to(device.torch_device), EPS)
    cache = torch.zeros(2, 2, 2, 64, 2, dim, dtype=torch.float16, device=device.torch_device)
    out = torch.zeros(n, heads * dim, device=device.torch_device)
    given_q, given_k, given_v = (x.to(device.torch_device) for x in (q, k, v))
    args = (given_q, given_k, given_v, cache[0], cache[1], out)
    attentions.rope_append(device, step, op, PLACE, *args, None, n)()

    def turned(x: Tensor) -> Tensor:
        wide = x.view(n, -1, dim).double()
        wide = wide * (wide.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight
        cos, sin = (angle.cpu().double().unsqueeze(1) for angle in (step.cos[0], step.sin[0]))
        half = cos.shape[-1]
        first, second = wide[..., :half], wide[..., half : 2 * half]
        return torch.cat((first * cos - second * sin, second * cos + first * sin, wide[..., 2 * half :]), -1)

    # Positions 67, 68 and 69 are in the sequence's second block, number 0.
    stored = cache[:, 0, 1, 3:6].cpu()
    return (
        far("queries", out, turned(q).flatten(1))
        or far("keys", stored[0].float(), turned(k), 5e-4)
        or far("values", stored[1].float(), v.view(n, 2, dim), 5e-4)
    )


def attention_of_few(device: Device) -> str:
    """Three rows of a text that has two units."""
    return attention(device, 540, 3)


def attention_of_many(device: Device) -> str:
    """So many rows that tiles of them share the keys."""
    return attention(device, 90, 40)


def attention_of_floats(device: Device) -> str:
    """Keys and values in f32."""
    return attention(device, 530, 2, torch.float32)


def attention(device: Device, length: int, n: int, cells: torch.dtype = torch.float16) -> str:
    """The last n rows of a text."""
    heads, dim = PLACE.n_heads, PLACE.head_dim
    step = step_of([length], n, device)
    n_blocks = -(-length // 64)
    cache = between_ones(2, n_blocks, 2, 64, 2, dim).to(cells)
    q = 4 * between_ones(n, heads * dim)
    op = Attention(q, 1, dim**-0.5)
    out = torch.zeros(n, heads * dim, device=device.torch_device)
    n_units = -(-length // UNIT_TOKENS)
    partial = torch.zeros(partial_numbers(n, n_units, heads, dim), device=device.torch_device)
    keys, values = (plane.to(device.torch_device) for plane in cache)
    operands = (q.to(device.torch_device), None, keys, values, out, n, n_units, partial)
    for launch in attentions.attend(device, step, op, PLACE, *operands):
        launch()

    # [2, tokens, KV heads, dim] in the order of the text: its blocks are numbered from its end
    text = cache[:, :, 1].flip(1).flatten(1, 2)[:, :length].double().repeat_interleave(heads // 2, 2)
    scores = torch.einsum("rhd,thd->rht", q.view(n, heads, dim).double(), text[0]) * op.scale
    unseen = torch.arange(length) > torch.arange(length - n, length).view(n, 1, 1)
    weights = scores.masked_fill(unseen, -torch.inf).softmax(-1)
    return far("attention", out, torch.einsum("rht,thd->rhd", weights, text[1]).flatten(1))


def step_of(lengths: list[int], n: int, device: Device) -> StepTensors:
    """The last n rows of every text, whose blocks are numbered from its end; 32 dims turn."""
    sequences: list[SequenceInput] = []
    positions: list[int] = []
    row_sequence: list[int] = []
    taken = 0
    for number, length in enumerate(lengths):
        blocks = list(range(taken, taken + -(-length // 64)))
        sequences.append(SequenceInput(length, (blocks[::-1],), (0,)))
        positions += range(length - n, length)
        row_sequence += [number] * n
        taken += len(blocks)
    angles = np.outer(positions, 0.5 ** np.arange(16)).astype(np.float32)
    rows = len(positions)
    step = StepInput([0] * rows, positions, row_sequence, sequences, [0], cos_sin=[(np.cos(angles), np.sin(angles))])
    buffer = StepBuffer(StepShape(1, (16,), sinks=False), rows, taken, device.torch_device)
    buffer.fill(step, rows)
    return buffer.tensors(rows)
