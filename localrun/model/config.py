"""ModelConfig: a model in one vocabulary, for every file format. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from localrun.base.dataclass import dataclass
from localrun.cache.groups import Group, make_groups
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.kinds.interface import CacheKind
from localrun.cache.kinds.latent import Latent
from localrun.cache.kinds.recurrent import Recurrent
from localrun.cache.kinds.shared import Shared
from localrun.model.latent_sizes import LatentSizes
from localrun.model.xielu import XieluNumbers
from localrun.ops.kv import KV_CODECS, KVCodec
from localrun.ops.types import Activation, LinearActivation, QKNorm, Routing

if TYPE_CHECKING:
    from localrun.model.layer_weights import MixerWeights
    from localrun.ops.recording import Ops
    from localrun.ops.types import Value

LayerKind = Literal["full", "window", "recurrent", "none"]  # none: it has neither attention nor a state
ENDS: dict[Activation, LinearActivation] = {
    "silu": "silu_mul",
    "gelu": "gelu_mul",
    "clamped_silu": "clamped_silu_mul",
    "relu_squared": "relu_squared",
    "xielu": "none",  # an instruction of its own
}


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """One kind of rotary embedding: pair j of the first `dims` dims turns by position / (theta^(2j/dims) · divisor_j).

    `long_divisors` replace `divisors` when the context is larger than `original_context` (longrope);
    `magnitude` multiplies cos and sin, `long_magnitude` likewise. A rule that changes where a text grows longer than
    some size (longrope, dynamic) has that size as its `original_context`.
    """

    theta: float
    dims: int
    divisors: tuple[float, ...] | None = None  # [dims / 2]
    long_divisors: tuple[float, ...] | None = None  # [dims / 2]
    original_context: int | None = None
    magnitude: float = 1.0
    long_magnitude: float = 1.0
    # Axis of every pair: 0 time, 1 height, 2 width; None: time. Angles of text do not depend on it.
    axes: tuple[int, ...] | None = field(default=None, repr=False)

    @property
    def endless(self) -> bool:
        """Whether a text may grow past the context: angles do not depend on its length."""
        return self.original_context is None

    def for_context(self, ctx: int) -> RopeSpec:
        """The spec for a context of `ctx` tokens, with short or long factors chosen."""
        if self.long_divisors is None or self.original_context is None or ctx <= self.original_context:
            return replace(self, long_divisors=None)
        return replace(self, divisors=self.long_divisors, magnitude=self.long_magnitude, long_divisors=None)


@dataclass(frozen=True, slots=True)
class QueryScale:
    """A query at `position` is multiplied by 1 + beta · log(1 + position // floor), as Llama 4 and Ministral 3 do."""

    beta: float
    floor: int


@dataclass(frozen=True, slots=True)
class Mixture:
    """A feed-forward part that is a few of `n_experts` networks, and one of `shared_size` that every token uses."""

    n_experts: int
    routing: Routing
    shared_size: int = 0  # 0: there is none
    shared_gate: bool = False  # it counts as much as a gate of its own says
    choice_bias: bool = False  # is added to the scores where experts are chosen, and not where they are weighed
    biases: bool = False  # of the router and of every expert
    apart: bool = False  # the shared expert, the others and the router have norms of their own, and experts a scale


class RecurrentMixer(Protocol):
    """Mixer of a recurrent layer, in place of attention. A frozen dataclass: its repr names what it computes."""

    @property
    def state_size(self) -> int:
        """f32 numbers that a layer stores for a sequence."""

    def matrices(self, hidden: int) -> Mapping[str, tuple[int, int]]:
        """Shapes of its matrices by name; `out` [hidden, …] multiplies the result of `mix`."""

    def vectors(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of its other weights by name; of a convolution [channels, taps]."""

    def mix(self, ops: Ops, a: Value, index: int, weights: MixerWeights) -> Value:
        """Record layer `index`: normed `a`, f32 [R, hidden] -> the operand of its output matrix."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One decoder layer. `rope` indexes ModelConfig.ropes (None: positions are not encoded in this layer).

    `ffn_size` is that of one expert where there is a `mixture`; 0: the layer ends with its attention or mixer.
    """

    kind: LayerKind
    window: int | None  # tokens a query sees, itself included; None in a full layer
    rope: int | None
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_size: int
    activation: Activation = "silu"
    pre_norm: bool = True
    post_norm: bool = False
    qk_norm: QKNorm = "none"
    attn_scale: float = 0.0  # multiplies q·k
    attn_softcap: float | None = None
    residual_scale: float = 1.0
    mixture: Mixture | None = None
    sink_window: int | None = None  # tokens a query sees in addition to the first block; never together with `window`
    mixer: RecurrentMixer | None = None  # in the place of attention
    sinks: bool = False  # every head has a learned score that joins the softmax and adds no value
    gated: bool = False  # what attention gives is multiplied by the sigmoid of a gate, element by element
    v_norm: bool = False  # of each head of values, without a weight
    k_is_v: bool = False  # what makes keys makes values, too: they differ by norms and rope
    # Where a file has them as hyperparameters; else they are weights.
    xielu: XieluNumbers | None = field(default=None, repr=False)
    # Rows of an image see each other, those after them, too.
    image_spans: bool = field(default=False, repr=False)
    shares_cache: int | None = None  # the earlier layer whose keys and values it reads, in place of its own
    bare_qk_norm: bool = field(default=False, repr=False)  # norms of q and k have no weights
    post_eps: float | None = field(default=None, repr=False)  # of the norms after a block; None: that of all norms
    # In the place of keys and values of heads: all share one key of `head_dim` numbers, the latent and what turns.
    latent: LatentSizes | None = field(default=None, repr=False)

    @property
    def has_attention(self) -> bool:
        return self.kind in ("full", "window")

    @property
    def has_gate(self) -> bool:
        """Whether its networks have a gate beside up and down."""
        return self.activation not in ("relu_squared", "xielu")

    @property
    def ffn_activation(self) -> LinearActivation:
        return ENDS[self.activation]

    @property
    def cache(self) -> CacheKind:
        """The kind of cache that the layer keeps of a sequence."""
        if self.mixer is not None:
            return Recurrent(self.mixer.state_size)
        if self.shares_cache is not None or self.kind == "none":
            return Shared()
        if self.latent is not None:
            return Latent(self.latent.rank, self.latent.rope_dims)
        window = self.window if self.sink_window is None else self.sink_window
        return AttentionCache(self.n_kv_heads, self.head_dim, self.head_dim, window, sink=self.sink_window is not None)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Tokens in `n` clusters of one size, of which those of the `n_used` likeliest get logits."""

    n: int
    n_used: int


@dataclass(frozen=True, slots=True)
class BlockGuess:
    """A drafter that guesses `size` tokens at once, by the newest token, masks, and rows that a model has after some of
    its layers (-1: its embedding)."""

    size: int
    mask_id: int
    taps: tuple[int, ...]
    rank: int  # of what a token changes the logits of the next one by; 0: nothing
    confident: bool  # it says how likely a token is right
    by_token: bool  # which depends on the token before
    n_target_layers: int | None  # of the model that it was trained for; None: not told


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The whole model. Sizes in elements, `max_context` in tokens."""

    arch: str
    hidden_size: int
    vocab_size: int
    max_context: int
    rms_eps: float
    layers: tuple[LayerSpec, ...]
    ropes: tuple[RopeSpec, ...]
    embed_scale: float = 1.0
    logit_scale: float = 1.0
    logit_softcap: float | None = None
    query_scale: QueryScale | None = None
    per_layer_size: int = 0  # width of the per-layer embedding, which has a table of its own; 0: none
    n_draft_layers: int = 0  # multi-token-prediction layers in a GGUF, after those of the model
    draft: LayerSpec | None = field(default=None, repr=False)  # the first of these, where it can draft
    reads_hidden: bool = field(default=False, repr=False)  # it is such a layer by itself: see `drafting`
    # Of an assistant, which reads the hidden rows and the cache of the model that it drafts for: the size of a row. The
    # `shares_cache` of its layers are that model's.
    body_size: int = field(default=0, repr=False)
    clusters: Clusters | None = field(default=None, repr=False)  # of the tokens of an assistant
    block: BlockGuess | None = field(default=None, repr=False)  # of a drafter that guesses blocks
    taps: tuple[int, ...] = field(default=(), repr=False)  # layers whose rows are given to such a drafter
    norms_embedding: bool = field(default=False, repr=False)  # rows of the embedding have a norm without weights
    n_added: int = field(default=0, repr=False)  # first layers after which rows of images get an addition; text none

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    @property
    def latents(self) -> tuple[LatentSizes, ...]:
        """The sizes of latent attention in its layers, each once; none for models that have no such layer."""
        return tuple(dict.fromkeys(spec.latent for spec in self.layers if spec.latent is not None))

    @property
    def image_spans(self) -> bool:
        """Whether rows of an image see those after them in some layer, so that all are computed in one step."""
        return any(spec.image_spans for spec in self.layers)

    @property
    def window(self) -> int | None:
        """The sliding window of the windowed layers, if there are any."""
        return next((spec.window for spec in self.layers if spec.window is not None), None)

    @property
    def drafting(self) -> ModelConfig | None:
        """The layer that drafts as a model of its own, which reads the hidden rows of this one beside the tokens."""
        if self.draft is None:
            return None
        return replace(self, layers=(self.draft,), n_draft_layers=0, draft=None, reads_hidden=True, n_added=0)

    @property
    def given_size(self) -> int:
        """Numbers of the hidden row that it reads beside each token; 0: it reads none."""
        return self.body_size or (self.hidden_size if self.reads_hidden or self.block else 0)

    def for_context(self, ctx: int) -> ModelConfig:
        """The config with every choice that depends on the context length made."""
        return replace(self, ropes=tuple(rope.for_context(ctx) for rope in self.ropes))

    def for_window(self, window: int) -> ModelConfig:
        """The config where a query sees `window` tokens and the first block.

        Layers with smaller windows, and those with latents, stay. Of an assistant a token less: its query is that of
        the next token, whose keys are not there.
        """
        if self.block is not None:
            return self
        window -= self.body_size > 0
        layers = (
            spec
            if not spec.has_attention or spec.latent or (spec.window is not None and spec.window <= window)
            else replace(spec, kind="full", window=None, sink_window=window)
            for spec in self.layers
        )
        return replace(self, layers=tuple(layers))

    @property
    def computed(self) -> tuple[object, ...]:
        """Parts whose reprs name all that blocks of a cache depend on; those of models without latents are as before
        there were some."""
        return (self.without_sinks(), *self.latents)

    def without_sinks(self) -> ModelConfig:
        """The config without the window beside the first block.

        Tokens computed before that window hides anything do not depend on it, nor on the context it follows from.
        """
        return replace(self, layers=tuple(replace(spec, sink_window=None) for spec in self.layers))


def group_layers(layers: Sequence[LayerSpec], codecs: Sequence[KVCodec] | None = None) -> tuple[Group, ...]:
    """Groups of layers that share blocks. `codecs` of every layer; by default those for 16 bits."""
    kinds = [spec.cache for spec in layers]
    return make_groups(kinds, codecs or [kind.codec(KV_CODECS["f16"]) for kind in kinds])
