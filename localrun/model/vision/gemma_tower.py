"""The forward pass of Gemma 4's tower: blocks over patches, then the projection of pooled rows."""

from collections.abc import Sequence
from math import inf

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.model.vision.gemma_config import GemmaTowerConfig
from localrun.ops.encoder import Clamp, SelfAttention
from localrun.ops.encoder_program import EncoderRecording, record_encoder
from localrun.ops.instructions import GeluMul, Linear, LinearWeight, Norm
from localrun.ops.layouts import Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value

Bounds = tuple[float, float]
EVERYTHING: Bounds = (-inf, inf)


@dataclass(frozen=True, slots=True)
class ClampedLinear:
    """A matrix, the bounds of what it reads, and those of what it gives."""

    weight: LinearWeight
    read: Bounds = EVERYTHING
    given: Bounds = EVERYTHING

    @property
    def is_free(self) -> bool:
        return self.read == self.given == EVERYTHING


@dataclass(frozen=True, slots=True)
class GemmaBlockWeights:
    """One block. Heads of q and k have their dims in the order of `paired_dims`, and so have their norms."""

    attn_norm: Vector
    q: ClampedLinear
    k: ClampedLinear
    v: ClampedLinear
    q_norm: Vector  # [head_dim]
    k_norm: Vector  # [head_dim]
    o: ClampedLinear
    attn_post_norm: Vector
    ffn_norm: Vector
    gate: ClampedLinear
    up: ClampedLinear
    down: ClampedLinear
    ffn_post_norm: Vector


@dataclass(frozen=True, slots=True)
class GemmaTowerWeights:
    """All weights of a tower, on one device but for those of positions and of standardising."""

    patch: LinearWeight
    positions: np.ndarray  # f32 [2, n_kept_positions, hidden] of columns and of lines, in main memory
    blocks: tuple[GemmaBlockWeights, ...]
    standard: tuple[np.ndarray, np.ndarray] | None  # what is taken off rows and what scales them then, f32 [hidden]
    projection: LinearWeight
    head_ones: Vector  # of a norm without a weight: [head_dim]
    ones: Vector  # likewise [hidden]


@dataclass(frozen=True, slots=True)
class GemmaTower:
    """A config and its weights on one device."""

    config: GemmaTowerConfig
    weights: GemmaTowerWeights

    def blocks(self) -> EncoderRecording:
        """All blocks, given patches and their positions."""

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            patches, positions = given
            (x,) = ops(Linear(patches, (self.weights.patch,), residual=positions))
            for block in self.weights.blocks:
                x = self.mlp_block(ops, self.attention_block(ops, x, block), block)
            return x

        return record_encoder(forward, [self.config.patch_values, self.config.hidden_size])

    def projection(self) -> EncoderRecording:
        """Rows of the image, from pooled ones."""
        weights, eps = self.weights, self.config.eps

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            (normed,) = ops(Norm(given[0], weights.ones, eps))
            return ops(Linear(normed, (weights.projection,)))[0]

        return record_encoder(forward, [self.config.hidden_size])

    def attention_block(self, ops: Ops, x: Value, block: GemmaBlockWeights) -> Value:
        eps = self.config.eps
        (a,) = ops(Norm(x, block.attn_norm, eps))
        made = products(ops, a, (block.q, block.k, block.v))
        norms = (block.q_norm, block.k_norm, self.weights.head_ones)
        q, k, v = (ops(Norm(one, norm, eps))[0] for one, norm in zip(made, norms, strict=True))
        (seen,) = ops(SelfAttention(q, k, v, self.config.n_heads, rope=0, scale=1.0))
        (o,) = products(ops, seen, (block.o,))
        return ops(Norm(o, block.attn_post_norm, eps, residual=x))[0]

    def mlp_block(self, ops: Ops, x: Value, block: GemmaBlockWeights) -> Value:
        eps = self.config.eps
        (a,) = ops(Norm(x, block.ffn_norm, eps))
        if block.gate.is_free and block.up.is_free:
            (hidden,) = ops(Linear(a, (block.gate.weight, block.up.weight), act="gelu_mul"))
        else:
            (hidden,) = ops(GeluMul(*products(ops, a, (block.gate, block.up))))
        (down,) = products(ops, hidden, (block.down,))
        return ops(Norm(down, block.ffn_post_norm, eps, residual=x))[0]


def products(ops: Ops, a: Value, linears: Sequence[ClampedLinear]) -> list[Value]:
    """Each matrix times `a`; those that read it in the same bounds read it together."""
    if len({linear.read for linear in linears}) > 1:
        return [made for linear in linears for made in products(ops, a, (linear,))]
    made = ops(Linear(clamped(ops, a, linears[0].read), tuple(linear.weight for linear in linears)))
    return [clamped(ops, one, linear.given) for one, linear in zip(made, linears, strict=True)]


def clamped(ops: Ops, x: Value, bounds: Bounds) -> Value:
    return x if bounds == EVERYTHING else ops(Clamp(x, *bounds))[0]


def paired_dims(head_dim: int) -> np.ndarray:
    """Order of a head's dims in which rope turns (j, j + head_dim / 2): the tower turns pairs within its first half by
    the column, and pairs within the second by the line. Scores are the same in any order -> int64 [head_dim]"""
    quarters: np.ndarray = np.arange(head_dim).reshape(2, 2, head_dim // 4).transpose(1, 0, 2)
    return quarters.ravel()
