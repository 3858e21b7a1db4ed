"""Short convolutions and the gated delta rule, token by token: how a text is cut into steps changes no bit."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.pool import KVPool
from localrun.ops.interface import StepInput
from localrun.ops.recurrent import GatedDeltaRule, ShortConv

UNIT_EPS = 1e-6  # added to the squared length of queries and keys, as the model was trained


def rows_by_sequence(step: StepInput) -> Iterator[tuple[int, list[int]]]:
    """The rows of each sequence of a step that has some, in ascending position."""
    rows: dict[int, list[int]] = {}
    for row, sequence in enumerate(step.row_sequence):
        rows.setdefault(sequence, []).append(row)
    yield from rows.items()


def short_conv(pool: KVPool, op: ShortConv) -> Tensor:
    before_gate, after_gate, x = op.x.chunk(3, dim=-1) if op.gated else (None, None, op.x)
    x = x if before_gate is None else before_gate * x
    n, width = x.shape[-1], op.taps - 1
    weight, out = op.weight.view(n, op.taps), torch.empty_like(x)
    for sequence, rows in rows_by_sequence(pool.step):
        before = pool.state(op.layer, sequence)[op.state_at : op.state_at + width * n].view(width, n)
        inputs = torch.cat((before, x[rows]))  # [taps - 1 + rows, channels]
        y = torch.zeros_like(inputs[width:]) if op.bias is None else op.bias.expand(len(rows), n)
        for tap in range(op.taps):
            y = y + weight[:, tap] * inputs[tap : tap + len(rows)]
        out[rows] = F.silu(y) if op.act == "silu" else y
        for index, row in enumerate(rows):
            last = inputs[index + 1 : index + op.taps]
            pool.put_state(op.layer, sequence, pool.step.positions[row], last.flatten(), op.state_at)
    return out if after_gate is None else after_gate * out


def gated_delta_rule(pool: KVPool, op: GatedDeltaRule) -> Tensor:
    n_keys, n_values, key_dim, value_dim = op.n_key_heads, op.n_value_heads, op.key_dim, op.value_dim
    shape, size = (n_values, key_dim, value_dim), n_values * key_dim * value_dim
    head = torch.arange(n_values, device=op.qkv.device)
    key_head = head % n_keys if op.tiled else head * n_keys // n_values
    q, k, v = op.qkv.split((n_keys * key_dim, n_keys * key_dim, n_values * value_dim), dim=-1)
    q, k = (unit(x.unflatten(-1, (n_keys, key_dim)))[:, key_head] for x in (q, k))  # [R, n_value_heads, key_dim]
    q, v = q * key_dim**-0.5, v.unflatten(-1, (n_values, value_dim))
    decay = torch.exp(op.decay * F.softplus(op.alpha + op.dt_bias))[..., None, None]
    share, out = op.beta.sigmoid()[..., None], torch.empty_like(v)
    for sequence, rows in rows_by_sequence(pool.step):
        state = pool.state(op.layer, sequence)[op.state_at : op.state_at + size].view(shape)
        for row in rows:
            state = state * decay[row]
            recalled = (state * k[row, :, :, None]).sum(1)  # [n_value_heads, value_dim]
            state = state + k[row, :, :, None] * ((v[row] - recalled) * share[row])[:, None]
            out[row] = (state * q[row, :, :, None]).sum(1)
            pool.put_state(op.layer, sequence, pool.step.positions[row], state.flatten(), op.state_at)
    gated = rms_norm(out, op.norm, op.eps) * F.silu(op.z.unflatten(-1, (n_values, value_dim)))
    return gated.flatten(1)


def unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + UNIT_EPS)
