"""The forward pass of a tower, in stages: each is recorded once, and between them rows change their form."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.model.vision.config import TowerConfig
from localrun.ops.encoder import LayerNorm, SelfAttention
from localrun.ops.encoder_program import EncoderRecording, record_encoder
from localrun.ops.instructions import Linear, LinearWeight
from localrun.ops.layouts import Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class NormWeights:
    """Weight and bias of a layer norm."""

    weight: Vector
    bias: Vector


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """One block of a vision transformer."""

    attn_norm: NormWeights
    q: LinearWeight
    k: LinearWeight
    v: LinearWeight
    o: LinearWeight
    ffn_norm: NormWeights
    up: LinearWeight
    down: LinearWeight


@dataclass(frozen=True, slots=True)
class MergerWeights:
    """A norm and two linears that make a row of the language model from merged patches."""

    norm: NormWeights
    up: LinearWeight
    down: LinearWeight


@dataclass(frozen=True, slots=True)
class TowerWeights:
    """All weights of a tower, on one device but for the table of positions."""

    patch: LinearWeight
    positions: np.ndarray  # f32 [n_positions, hidden], in main memory
    blocks: tuple[BlockWeights, ...]
    merger: MergerWeights
    taps: tuple[MergerWeights, ...]


@dataclass(frozen=True, slots=True)
class Tower:
    """A config and its weights on one device."""

    config: TowerConfig
    weights: TowerWeights

    def stages(self) -> list[EncoderRecording]:
        """Programs of the blocks up to each tapped layer, and of those after. The first is given patches and positions,
        the others what the one before has left."""
        ends = sorted({*(layer + 1 for layer in self.config.tapped), self.config.n_layers})
        return [self.stage(first, end) for first, end in pairwise([0, *ends])]

    def stage(self, first: int, end: int) -> EncoderRecording:
        """Blocks `first` … `end`, as one program."""
        config = self.config

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            x = given[0]
            if first == 0:
                patches, positions = given
                (x,) = ops(Linear(patches, (self.weights.patch,), residual=positions))
            for block in self.weights.blocks[first:end]:
                x = mlp_block(ops, attention_block(ops, x, block, config), block, config)
            return x

        before = [config.patch_values] if first == 0 else []
        return record_encoder(forward, [*before, config.hidden_size])

    def last_norm(self) -> EncoderRecording:
        """The norm of patches, before they are merged."""
        norm, config = self.weights.merger.norm, self.config
        return record_encoder(lambda ops, given: layer_norm(ops, given[0], norm, config), [config.hidden_size])

    def merger(self) -> EncoderRecording:
        """Rows of the image, from merged patches after their norm."""
        return record_encoder(lambda ops, given: merged(ops, given[0], self.weights.merger), [self.config.merged_size])

    def tap(self, weights: MergerWeights) -> EncoderRecording:
        """Rows that are added later, from merged patches: their norm is of all of them together."""

        def forward(ops: Ops, given: Sequence[Value]) -> Value:
            return merged(ops, layer_norm(ops, given[0], weights.norm, self.config), weights)

        return record_encoder(forward, [self.config.merged_size])


def attention_block(ops: Ops, x: Value, block: BlockWeights, config: TowerConfig) -> Value:
    q, k, v = ops(Linear(layer_norm(ops, x, block.attn_norm, config), (block.q, block.k, block.v)))
    (o,) = ops(SelfAttention(q, k, v, config.n_heads, rope=0, scale=config.head_dim**-0.5))
    return ops(Linear(o, (block.o,), residual=x))[0]


def mlp_block(ops: Ops, x: Value, block: BlockWeights, config: TowerConfig) -> Value:
    (hidden,) = ops(Linear(layer_norm(ops, x, block.ffn_norm, config), (block.up,), act=config.activation))
    return ops(Linear(hidden, (block.down,), residual=x))[0]


def merged(ops: Ops, x: Value, weights: MergerWeights) -> Value:
    (hidden,) = ops(Linear(x, (weights.up,), act="gelu_erf"))
    return ops(Linear(hidden, (weights.down,)))[0]


def layer_norm(ops: Ops, x: Value, norm: NormWeights, config: TowerConfig) -> Value:
    return ops(LayerNorm(x, norm.weight, norm.bias, config.eps))[0]
