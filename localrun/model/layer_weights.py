"""The weights of a model by their part, in a backend's layout. Torch-free."""

from collections.abc import Mapping

from localrun.base.dataclass import dataclass
from localrun.model.xielu import XieluNumbers
from localrun.ops.instructions import LinearWeight, SharedExpert
from localrun.ops.layouts import Vector


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """Weights of queries, keys, values, the gate where there is one, and the output.

    Without `v` values are those of `k`; without `k` the layer reads the keys and values of another. `sinks` are scores
    that join the softmax of each head.
    """

    q: LinearWeight
    k: LinearWeight | None
    v: LinearWeight | None
    o: LinearWeight
    gate: LinearWeight | None = None
    sinks: Vector | None = None  # [n_heads]


@dataclass(frozen=True, slots=True)
class LatentWeights:
    """Weights of latent attention. Without `q_a` queries are made of the row itself.

    `k_b` of each head is transposed: it brings a query to the latents, in the place of latents to the keys.
    """

    q_a: LinearWeight | None  # [q_rank, hidden]
    q_a_norm: Vector | None
    q_nope: LinearWeight  # [n_heads · nope_dims, q_rank]
    q_rope: LinearWeight  # [n_heads · rope_dims, q_rank]
    kv_a: LinearWeight  # [rank, hidden]
    kv_a_norm: Vector
    k_rope: LinearWeight  # [rope_dims, hidden]
    k_b: LinearWeight  # [n_heads · rank, nope_dims]
    v_b: LinearWeight  # [n_heads · value_dim, rank]
    o: LinearWeight


@dataclass(frozen=True, slots=True)
class MixerWeights:
    """Weights of a recurrent layer's mixer, by its own names."""

    matrices: Mapping[str, LinearWeight]
    vectors: Mapping[str, Vector]


@dataclass(frozen=True, slots=True)
class PerLayerWeights:
    """Weights by which a layer uses the per-layer embedding of a token (`ModelConfig.per_layer_size`)."""

    gate: LinearWeight  # [size, hidden]
    out: LinearWeight  # [hidden, size]
    norm: Vector


@dataclass(frozen=True, slots=True)
class SeparateNorms:
    """Norms of a layer whose shared expert and other experts each have their own."""

    shared_post: Vector  # of what the shared expert gives
    experts: Vector  # of what the others read
    experts_post: Vector  # of what they give
    router: Vector  # of what the router reads


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one layer, None for unused ones.

    In a mixture gate, up and down are those of all experts, one after the other.
    """

    mixing: AttentionWeights | LatentWeights | MixerWeights | None
    gate: LinearWeight | None
    up: LinearWeight | None
    down: LinearWeight | None
    attn_norm: Vector | None = None
    attn_post_norm: Vector | None = None
    ffn_norm: Vector | None = None
    ffn_post_norm: Vector | None = None
    q_norm: Vector | None = None
    k_norm: Vector | None = None
    router: LinearWeight | None = None
    choice_bias: Vector | None = None
    shared: SharedExpert | None = None
    expert_scale: Vector | None = None
    separate_norms: SeparateNorms | None = None
    per_layer: PerLayerWeights | None = None
    xielu: XieluNumbers | None = None
    out_scale: float = 1.0  # of all that the layer gives


@dataclass(frozen=True, slots=True)
class PerLayerTable:
    """The per-layer embedding table, all layers concatenated."""

    embed: LinearWeight  # [vocab, n_layers · size]
    projection: LinearWeight  # [n_layers · size, hidden]
    norm: Vector  # [size]


@dataclass(frozen=True, slots=True)
class TapWeights:
    """Matrices for the rows after some layers of a model, whose sum is normed for what drafts beside it."""

    matrices: Mapping[int, LinearWeight]  # [hidden, hidden] each, by layer; -1: of the embedding
    norm: Vector
    eps: float  # of the norm


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """All weights. With tied embeddings `output` is `embed` itself."""

    embed: LinearWeight
    layers: tuple[LayerWeights, ...]
    output_norm: Vector
    output: LinearWeight
    per_layer: PerLayerTable | None = None
    embed_norm: Vector | None = None  # of ones: rows of the embedding have a norm without weights
