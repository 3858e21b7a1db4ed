"""A small case of each kernel that turns, stores or looks at keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from localrun.backends.cuda import attentions
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.scratch import UNIT_TOKENS, partial_numbers
from localrun.backends.gpu.self_test_steps import attended, step_of, turned
from localrun.backends.gpu.synthetic import CLOSE, between_ones, error_of, far, off
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, RopeAppend

EPS = 1e-6
# Tensor cores cut off what is below the last bit of the greatest addend (kernels/emulator/warp.cpp), so sums of n
# products in units of w with b extra bits lose at most (n + n / w) · 2^-(23 + b), and n / w · 2^-23 where units
# round, of the greatest partial sum; half of it on average. Values of a block are n = 128 products, 64 keys by the
# two halves of a weight: 2.3e-5 at most on Turing (w 4, b 0), 1.1e-5 on Ampere and Ada (8, 1), 5.0e-6 on Hopper (16,
# 2). Errors of scores count by how they differ, which is less. The emulator finds 1.1e-5, 5.2e-6 and 3.1e-6, and 1e-2
# with a fragment that is wrong.
CLOSE_WHEN_CUT = 3e-5
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

    def exact(x: Tensor) -> Tensor:
        return turned(x.view(n, -1, dim), weight, EPS, step)

    # Positions 67, 68 and 69 are in the sequence's second block, number 0.
    stored = cache[:, 0, 1, 3:6].cpu()
    return (
        far("queries", out, exact(q).flatten(1))
        or far("keys", stored[0].float(), exact(k), 5e-4)
        or far("values", stored[1].float(), v.view(n, 2, dim), 5e-4)
    )


def attention_of_few(device: Device) -> str:
    """Three rows of a text that has two units."""
    return off("attention", error_of_few(device), CLOSE_WHEN_CUT)


def attention_of_many(device: Device) -> str:
    """Check attention of enough rows that tiles of them share the keys."""
    return off("attention", error_of_many(device), CLOSE_WHEN_CUT)


def attention_of_floats(device: Device) -> str:
    """Keys and values in f32."""
    return off("attention", attention_error(device, 530, 2, torch.float32), CLOSE)


def error_of_few(device: Device) -> float:
    return attention_error(device, 540, 3)


def error_of_many(device: Device) -> float:
    return attention_error(device, 90, 40)


def attention_error(device: Device, length: int, n: int, cells: torch.dtype = torch.float16) -> float:
    """Error of the last n rows of a text, of the greatest number."""
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
    text = cache[:, :, 1].flip(1).flatten(1, 2)[:, :length]
    return error_of(out, attended(q.view(n, heads, dim), text[0], text[1], op.scale))
