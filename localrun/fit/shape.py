"""The shape of a model for questions that need no weights: its layers, and how many parameters a token uses."""

from dataclasses import dataclass, replace
from math import prod

from localrun.base.errors import ModelFileError
from localrun.cache.kinds.interface import CacheKind
from localrun.fit.unsupported import unsupported_layers
from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of
from localrun.model.archs.reading import fields_of
from localrun.model.capability import obstacle
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.model.fields import Fields
from localrun.model.weights import Namer


@dataclass(frozen=True, slots=True)
class Shape:
    """`n_params` counts all parameters, `active_params` those that compute one token, `mapped_params` those that stay
    in the file, `vocabulary_params` those of the embedding and of an output matrix of its own. `obstacle`: why it
    cannot run.

    `caches` is what each layer keeps where that is not what `config` says, as in a model that cannot run.
    """

    config: ModelConfig
    n_params: int
    active_params: int
    obstacle: str = ""
    caches: tuple[CacheKind, ...] = ()
    mapped_params: int = 0
    vocabulary_params: int = 0

    @property
    def held_params(self) -> int:
        """Those that are held in memory."""
        return self.n_params - self.mapped_params


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture: `used` of `n` feed-forward networks of `ffn_size` compute a token."""

    n: int
    used: int
    ffn_size: int


def shape_of(source: TensorSource) -> Shape:
    """The shape that a file's key-values give. Raises ModelFileError where they do not say enough.

    A model of an architecture that cannot run yet has one too: its layers are taken to be alike, and to keep what its
    metadata says.
    """
    why = obstacle(source)
    caches: tuple[CacheKind, ...] = ()
    tied = source.metadata.get("tie_word_embeddings") is not False or source.format == "gguf"
    try:
        arch = arch_of(source)
        config, experts = arch.config(source), None
        tied = Namer(arch, config, source).tied if source.tensors else tied
    except ModelFileError:
        config = _plain_config(fields_of(source, {"rms_eps": 1e-6}), source)
        caches, experts = unsupported_layers(source.metadata, config), _experts(source)
    return replace(make_shape(config, tied, experts, why), caches=caches)


def make_shape(config: ModelConfig, tied: bool, experts: Experts | None = None, obstacle: str = "") -> Shape:
    """Count the parameters of all matrices; norms and biases are a few in a million."""
    embedding = config.vocab_size * config.hidden_size
    n_params = vocabulary = embedding * (1 if tied else 2)
    active = embedding  # the output matrix; of the embedding a token reads one row
    of_all = config.n_layers * config.per_layer_size
    besides = 3 * config.hidden_size * of_all  # a projection for all layers, and two matrices in each
    n_params += besides
    active += besides
    for layer in config.layers:
        mixing = 0
        if layer.mixer is not None:
            mixing = sum(prod(shape) for shape in layer.mixer.matrices(config.hidden_size).values())
        elif layer.has_attention:
            n_q_matrices = 3 if layer.gated else 2  # with that of the result
            n_kv_matrices = 0 if layer.shares_cache is not None else 1 if layer.k_is_v else 2
            heads = n_q_matrices * layer.n_heads + n_kv_matrices * layer.n_kv_heads
            mixing = config.hidden_size * layer.head_dim * heads
        a_network = (3 if layer.has_gate else 2) * config.hidden_size
        if layer.mixture:
            one, shared = a_network * layer.ffn_size, a_network * layer.mixture.shared_size
            feed_forward = layer.mixture.n_experts * one + shared
            used = layer.mixture.routing.n_used * one + shared
        elif experts is None:
            feed_forward = used = a_network * layer.ffn_size
        else:
            feed_forward = experts.n * a_network * experts.ffn_size
            used = feed_forward * experts.used // experts.n
        n_params += mixing + feed_forward
        active += mixing + used
    mapped = config.vocab_size * of_all
    return Shape(config, n_params + mapped, active, obstacle, mapped_params=mapped, vocabulary_params=vocabulary)


def _experts(source: TensorSource) -> Experts | None:
    values = source.metadata
    arch = values.get("general.architecture")
    if source.format == "gguf":
        names = [f"{arch}.{key}" for key in ("expert_count", "expert_used_count", "expert_feed_forward_length")]
        names.append(f"{arch}.feed_forward_length")
    else:
        total = "num_experts" if "num_experts" in values else "num_local_experts"
        names = [total, "num_experts_per_tok", "moe_intermediate_size", "intermediate_size"]
    n, used, ffn_size, dense = (values.get(name) for name in names)
    ffn_size = ffn_size or dense
    counts = [n, used, ffn_size]
    if not all(type(count) is int and 0 < count < 1 << 24 for count in counts) or used > n:  # type: ignore[operator]
        return None
    return Experts(*counts)  # type: ignore[arg-type]


def _plain_config(fields: Fields, source: TensorSource) -> ModelConfig:
    heads, hidden = fields["n_heads"], fields["hidden_size"]
    head_dim = fields["head_dim"] or hidden // heads
    layer = LayerSpec(
        kind="full",
        window=None,
        rope=0,
        n_heads=heads,
        n_kv_heads=fields["n_kv_heads"] or heads,
        head_dim=head_dim,
        ffn_size=fields["ffn_size"],
    )
    vocabulary = fields["vocab_size"] or len(source.metadata.get("tokenizer.ggml.tokens", ())) or 1
    return ModelConfig(
        arch=str(source.metadata.get("general.architecture") or source.metadata.get("model_type") or "unknown"),
        hidden_size=hidden,
        vocab_size=int(vocabulary),
        max_context=fields["max_context"],
        rms_eps=fields["rms_eps"],
        layers=(layer,) * fields["n_layers"],
        ropes=(RopeSpec(fields["rope_theta"], head_dim),),
    )
