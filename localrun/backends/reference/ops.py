"""The reference backend: every operation in plain torch, on any device. It defines what correct means.

No float64 and no complex numbers: Apple's MPS has neither.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from localrun.backends.reference.attention import attend, attend_all, visible
from localrun.backends.reference.delta_net import gated_delta_rule, short_conv
from localrun.backends.reference.kv_codes import rotate_hadamard
from localrun.backends.reference.logits import finish_logits
from localrun.backends.reference.moe import mixture
from localrun.backends.reference.norm import layer_norm, rms_norm
from localrun.backends.reference.pool import KVPool
from localrun.backends.reference.selective_scan import selective_scan
from localrun.ops.encoder import Clamp, LayerNorm, SelfAttention
from localrun.ops.instructions import (
    AddImageRows,
    Attention,
    Embed,
    GeluMul,
    Linear,
    LinearWeight,
    LogitsOf,
    Moe,
    Norm,
    RopeAppend,
    Scale,
    SigmoidMul,
    Xielu,
)
from localrun.ops.interface import Angles, Logits, StepInput
from localrun.ops.kv import BLOCK_TOKENS, MAX_F16
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.layouts import F32, Packed, on_device
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv
from localrun.ops.types import CLAMP, SLOPE, LinearActivation

SINGLE: dict[str, Callable[[Tensor], Tensor]] = {  # activations of one product
    "relu_squared": lambda x: F.relu(x).square(),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "gelu_quick": lambda x: x * torch.sigmoid(SLOPE * x),
}
TILE_BYTES = 64 << 20  # of a matrix decoded as it is used, or of attention scores, at a time


class ReferenceOps:
    """Executes instructions on `device`; `pool` holds the keys and values of every sequence."""

    def __init__(self, pool: KVPool, device: torch.device) -> None:
        self.pool = pool
        self.device = device
        self.step: StepInput

    def begin(self, step: StepInput) -> None:
        """Point all operations at one step; called once before them."""
        self.step = step
        self.pool.begin(step)
        self.positions = torch.tensor(step.positions, device=self.device)  # [R]
        self.reach = torch.tensor(step.reach, device=self.device) if step.reach else self.positions  # [R]
        self.cos_sin, self.sink_cos_sin = self.angles(step.cos_sin), self.angles(step.sink_cos_sin)
        self.query_scale = None if step.query_scale is None else on_device(step.query_scale, self.device)[:, None, None]
        buffer_row = step.images.buffer_row if step.images is not None else ()
        seen = [n for n, row in enumerate(buffer_row) if row >= 0]
        self.image_rows = torch.tensor(seen, dtype=torch.int64, device=self.device)
        self.rows_of: list[dict[int, list[int]]] = [{} for _ in step.sequences]  # [S]: rows by the block they lie in
        for row, (sequence, position) in enumerate(zip(step.row_sequence, step.positions, strict=True)):
            self.rows_of[sequence].setdefault(position // BLOCK_TOKENS, []).append(row)

    def receive(self, value: Tensor) -> Tensor:
        return value.to(self.device)

    def angles(self, kinds: Sequence[Angles]) -> list[tuple[Tensor, Tensor]]:
        """Cosines and sines of every rope kind on the device."""
        return [(on_device(cos, self.device), on_device(sin, self.device)) for cos, sin in kinds]

    def embed(self, op: Embed) -> tuple[Tensor]:
        ids = torch.tensor(self.step.token_ids, device=self.device)
        if op.image_id is not None:
            ids[self.image_rows] = op.image_id
        rows = op.weight.unpack_rows(ids) * op.scale
        if self.step.images is not None and op.image_id is None:
            rows[self.image_rows] = self.of_images(self.step.images.rows)
        return (rows,)

    def add_image_rows(self, op: AddImageRows) -> tuple[Tensor]:
        total = op.x.clone()
        if self.step.images is not None:
            total[self.image_rows] += self.of_images(self.step.images.added[op.place])
        return (total,)

    def of_images(self, buffer: np.ndarray) -> Tensor:
        """The rows of the step's images, in their order, on the device."""
        assert self.step.images is not None
        wanted = [row for row in self.step.images.buffer_row if row >= 0]
        return on_device(buffer[wanted], self.device)

    def norm(self, op: Norm) -> tuple[Tensor]:
        normed = self.rms_norm(op.x.unflatten(-1, (-1, len(op.weight))), op.weight, op.eps).flatten(1)
        return (normed if op.residual is None else op.residual + normed,)

    def rms_norm(self, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
        return rms_norm(x, weight, eps)

    def linear(self, op: Linear) -> tuple[Tensor, ...]:
        results = [self.product(op.a, weight) for weight in op.weights]
        if op.act != "none":
            results = [activate(results[0], results[-1], op.act)]
        if op.out_scale != 1.0:
            results = [y * op.out_scale for y in results]
        return tuple(results if op.residual is None else [op.residual + y for y in results])

    def product(self, x: Tensor, weight: LinearWeight) -> Tensor:
        """scale · (x @ W.T) + adapters + bias"""
        read = x if weight.gather is None else x[:, weight.gather]
        if isinstance(weight.scale, float) and weight.scale == 1.0 and not weight.adapters:
            return self.matmul(read, weight.packed, weight.bias)
        y = self.matmul(read, weight.packed) * weight.scale
        for adapter in weight.adapters:
            y = y + adapter.scale * self.matmul(self.matmul(x, adapter.a), adapter.b)
        return y if weight.bias is None else y + weight.bias

    def matmul(self, x: Tensor, weight: Packed, bias: Tensor | None = None) -> Tensor:
        """x @ weight.T + bias, decoding the matrix in tiles of rows unless it is held as f32."""
        if weight.layout is F32:
            return self.times(x, weight.planes[0], bias)
        tile = max(1, TILE_BYTES // (4 * weight.n_cols))
        parts = [self.times(x, weight.unpack(r, min(tile, weight.n_rows - r))) for r in range(0, weight.n_rows, tile)]
        y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return y if bias is None else y + bias

    def times(self, x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
        """x @ matrix.T + bias"""
        return F.linear(x, matrix, bias)

    def rope_append(self, op: RopeAppend) -> tuple[Tensor, ...]:
        if op.k is not None and op.v is not None:
            self.append(op, op.k, op.v)
        q = self.heads(op.q, op.q_weight, self.pool.layers[op.layer].n_heads, op)
        queries = [q, q] if op.sink_query else [q]
        if op.rope is not None:
            angles = (self.cos_sin[op.rope], *(kind[op.rope] for kind in [self.sink_cos_sin] if op.sink_query))
            queries = [rotate(x, *cos_sin) for x, cos_sin in zip(queries, angles, strict=True)]
        if self.query_scale is not None:
            queries = [x * self.query_scale for x in queries]
        if self.pool.codecs[op.layer].rotates:
            queries = [rotate_hadamard(x) for x in queries]
        return tuple(queries)

    def append(self, op: RopeAppend, k: Tensor, v: Tensor) -> None:
        """Store the keys and values of the step's rows."""
        n_heads = self.pool.layers[op.layer].n_kv_heads
        k, v = self.heads(k, op.k_weight, n_heads, op), v.unflatten(-1, (n_heads, -1))
        if op.v_norm:
            v = self.rms_norm(v, None, op.eps)
        if op.rope is not None:
            k = rotate(k, *self.cos_sin[op.rope])
        if self.pool.codecs[op.layer].rotates:
            k, v = (rotate_hadamard(x.clamp(-MAX_F16, MAX_F16)) for x in (k, v))
        self.pool.append(op.layer, k, v)

    def heads(self, x: Tensor, weight: Tensor, n_heads: int, op: RopeAppend) -> Tensor:
        """Queries or keys after the norm of the row, or of each head -> [R, n_heads, head_dim]."""
        if op.qk_norm == "row":
            x = self.rms_norm(x, weight, op.eps)
        x = x.unflatten(-1, (n_heads, -1))
        return self.rms_norm(x, weight, op.eps) if op.qk_norm == "head" else x

    def attention(self, op: Attention) -> tuple[Tensor]:
        assert op.window is None or op.sink_window is None
        codec, out = self.pool.codecs[op.layer], self.attention_rows(op)
        reach = self.reach_in(op)
        for index, by_block in enumerate(self.rows_of):
            blocks = self.pool.blocks(op.layer, index)
            assert op.window is not None or blocks.from_the_start, "block 0 is missing"
            if codec.native and by_block:  # one form: all rows see the same keys
                by_block = {max(by_block): [row for rows in by_block.values() for row in rows]}
            for own, rows in by_block.items():
                slots, keys, values = blocks.seen_from(own, int(reach[rows].max()) // BLOCK_TOKENS)
                n_rows = max(1, TILE_BYTES // (4 * op.q.shape[1] * len(slots)))
                for tile in torch.tensor(rows, device=self.device).split(n_rows):
                    mask = visible(self.positions[tile], slots, op.window, op.sink_window, reach[tile])
                    sink_q = None if op.sink_query is None else op.sink_query[tile]
                    out[tile] = attend(op.q[tile], keys, values, mask, op.scale, op.softcap, op.sinks, sink_q)
        return ((rotate_hadamard(out) if codec.rotates else out).flatten(1),)

    def attention_rows(self, op: Attention) -> Tensor:
        """Room for the results, [R, n_heads, dims of a value]."""
        place = self.pool.layers[op.layer]
        return torch.empty(*op.q.shape[:2], place.value_dim or place.head_dim, device=self.device)

    def reach_in(self, op: Attention) -> Tensor:
        """The last position that each row sees, [R]."""
        return self.reach if op.spans else self.positions

    def head_linear(self, op: HeadLinear) -> tuple[Tensor]:
        weight, shape = op.weight, (op.n_heads, -1)
        assert not weight.adapters, "matrices of heads have none"
        x = op.x.unflatten(-1, shape)
        matrices = weight.packed.unpack(0, weight.packed.n_rows).unflatten(0, shape)  # [n_heads, n_out, n_in]
        y = self.times_heads(x if weight.gather is None else x[..., weight.gather], matrices)
        y = y * (weight.scale if isinstance(weight.scale, float) else weight.scale[:, None])
        return ((y if weight.bias is None else y + weight.bias.unflatten(0, shape)).flatten(1),)

    def times_heads(self, x: Tensor, matrices: Tensor) -> Tensor:
        """Each head of x [R, n_heads, n_in] times its matrix -> [R, n_heads, n_out]"""
        return torch.einsum("rhi,hoi->rho", x, matrices)

    def latent_append(self, op: LatentAppend) -> tuple[Tensor]:
        q, q_rope = (x.unflatten(-1, (self.pool.layers[op.layer].n_heads, -1)) for x in (op.q, op.q_rope))
        k_rope = op.k_rope[:, None]
        if op.rope is not None:
            q_rope, k_rope = (rotate(x, *self.cos_sin[op.rope]) for x in (q_rope, k_rope))
        self.pool.append(op.layer, torch.cat((op.latent[:, None], k_rope), dim=-1))
        query = torch.cat((q, q_rope), dim=-1)
        return (query if self.query_scale is None else query * self.query_scale,)

    def sigmoid_mul(self, op: SigmoidMul) -> tuple[Tensor]:
        return (op.x * op.gate.sigmoid(),)

    def gelu_mul(self, op: GeluMul) -> tuple[Tensor]:
        return (activate(op.gate, op.x[:, op.first : op.first + op.gate.shape[-1]], "gelu_mul"),)

    def scale(self, op: Scale) -> tuple[Tensor]:
        return (op.x * op.factor,)

    def xielu(self, op: Xielu) -> tuple[Tensor]:
        return (xielu(op),)

    def short_conv(self, op: ShortConv) -> tuple[Tensor]:
        return (short_conv(self.pool, op),)

    def gated_delta_rule(self, op: GatedDeltaRule) -> tuple[Tensor]:
        return (gated_delta_rule(self.pool, op),)

    def selective_scan(self, op: SelectiveScan) -> tuple[Tensor]:
        return (selective_scan(self.pool, op),)

    def moe(self, op: Moe) -> tuple[Tensor]:
        out = mixture(self, op) * op.out_scale
        return (out if op.residual is None else op.residual + out,)

    def layer_norm(self, op: LayerNorm) -> tuple[Tensor]:
        return (layer_norm(op.x, op.weight, op.bias, op.eps),)

    def clamp(self, op: Clamp) -> tuple[Tensor]:
        return (op.x.clamp(op.low, op.high),)

    def self_attention(self, op: SelfAttention) -> tuple[Tensor]:
        q, k, v = (x.unflatten(-1, (op.n_heads, -1)) for x in (op.q, op.k, op.v))
        if op.rope is not None:
            q, k = (rotate(x, *self.cos_sin[op.rope]) for x in (q, k))
        lengths = [sequence.length for sequence in self.step.sequences]
        parts = zip(q.split(lengths), k.split(lengths), v.split(lengths), strict=True)
        return (torch.cat([attend_all(*part, op.scale) for part in parts]).flatten(1),)

    def logits(self, op: LogitsOf) -> tuple[Logits]:
        wanted = torch.tensor(self.step.logits_rows, dtype=torch.long, device=self.device)
        self.hidden = op.a
        rows = self.matmul(op.a[wanted], op.weight)
        if op.scale != 1.0:
            rows = rows * op.scale
        if op.softcap is not None:
            capped = op.softcap * torch.tanh(rows / op.softcap)
            rows = capped.where(rows.isfinite(), rows)  # no cap hides what is no number
        return (finish_logits(rows, self.step.adjust),)


def activate(gate: Tensor, up: Tensor, activation: LinearActivation) -> Tensor:
    """The activation of a feed-forward network; one without a gate is that of `up`."""
    if activation in SINGLE:
        return SINGLE[activation](up)
    if activation == "clamped_silu_mul":
        gate, up = gate.clamp(max=CLAMP), up.clamp(-CLAMP, CLAMP)
        return gate * torch.sigmoid(SLOPE * gate) * (up + 1)
    return (F.silu(gate) if activation == "silu_mul" else F.gelu(gate, approximate="tanh")) * up


def xielu(op: Xielu) -> Tensor:
    """The numbers that the instruction gives for those of `op.x`."""
    x: Tensor = op.x
    below = torch.expm1(x.clamp(max=op.limit)) - x
    return torch.where(x > 0, op.positive * x * x, op.negative * below) + op.linear * x


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x [R, heads, head_dim]: dims j and j + dims/2 are one pair; dims past those stay.

    cos, sin: [R, dims / 2] (Su et al. 2021, in the pairing of GPT-NeoX).
    """
    half = cos.shape[-1]
    cos, sin = cos[:, None, :], sin[:, None, :]
    low, high, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((low * cos - high * sin, high * cos + low * sin, rest), dim=-1)
