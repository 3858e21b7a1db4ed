"""The weights of a model by their part in it, in a backend's layout. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass

from localrun.ops.instructions import LinearWeight, SharedExpert
from localrun.ops.layouts import Packed, Vector


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """What makes queries, keys, values and, where there is one, the gate of their result; and the output matrix.

    `sinks` are scores that join the softmax of each head.
    """

    q: LinearWeight
    k: LinearWeight
    v: LinearWeight
    o: LinearWeight
    gate: LinearWeight | None = None
    sinks: Vector | None = None  # [n_heads]


@dataclass(frozen=True, slots=True)
class MixerWeights:
    """Those of a recurrent layer's mixer, by the names it gives them."""

    matrices: Mapping[str, Packed]
    vectors: Mapping[str, Vector]


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one layer; what its LayerSpec does not use is None. In a mixture gate, up and down are those of all
    experts, one after the other."""

    mixing: AttentionWeights | MixerWeights
    gate: LinearWeight
    up: LinearWeight
    down: LinearWeight
    attn_norm: Vector | None = None
    attn_post_norm: Vector | None = None
    ffn_norm: Vector | None = None
    ffn_post_norm: Vector | None = None
    q_norm: Vector | None = None
    k_norm: Vector | None = None
    router: LinearWeight | None = None
    choice_bias: Vector | None = None
    shared: SharedExpert | None = None


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """All weights. With tied embeddings `output` is `embed` itself."""

    embed: Packed
    layers: tuple[LayerWeights, ...]
    output_norm: Vector
    output: Packed
