"""The selective scan of Mamba-2, token by token: how a text is cut into steps changes no bit."""

import torch
import torch.nn.functional as F
from torch import Tensor

from localrun.backends.reference.delta_net import rows_by_sequence
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.pool import KVPool
from localrun.ops.recurrent import SelectiveScan


def selective_scan(pool: KVPool, op: SelectiveScan) -> Tensor:
    shape, size = (op.n_heads, op.state_dim, op.head_dim), op.n_heads * op.state_dim * op.head_dim
    width, keys = op.n_heads * op.head_dim, op.n_groups * op.state_dim
    x, b, c = op.xbc.split((width, keys, keys), dim=-1)
    x = x.unflatten(-1, (op.n_heads, op.head_dim))
    b, c = (
        part.unflatten(-1, (op.n_groups, op.state_dim)).repeat_interleave(op.n_heads // op.n_groups, 1)
        for part in (b, c)
    )  # [R, n_heads, state_dim]
    steps = F.softplus(op.dt + op.dt_bias)  # [R, n_heads]
    decay, written = torch.exp(op.decay * steps)[..., None, None], steps[..., None] * x
    out = torch.empty_like(x)
    for sequence, rows in rows_by_sequence(pool.step):
        state = pool.state(op.layer, sequence)[op.state_at : op.state_at + size].view(shape)
        for row in rows:
            state = state * decay[row] + b[row, :, :, None] * written[row, :, None]
            out[row] = (state * c[row, :, :, None]).sum(1)
            pool.put_state(op.layer, sequence, pool.step.positions[row], state.flatten(), op.state_at)
    gated = (out + op.skip[:, None] * x).flatten(1) * F.silu(op.z)
    groups: Tensor = gated.unflatten(-1, (op.n_groups, -1))
    normed: Tensor = rms_norm(groups, None, op.eps).flatten(1) * op.norm
    return normed
