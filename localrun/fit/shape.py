"""Shape of a model for questions that need no weights: its layers and parameter counts."""

from collections import Counter
from dataclasses import replace
from math import prod

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.cache.kinds.interface import CacheKind
from localrun.fit.unsupported import unsupported_layers
from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of
from localrun.model.archs.hf_classes import hf_ties
from localrun.model.archs.reading import fields_of
from localrun.model.capability import check_loadable, config_or_obstacle
from localrun.model.config import LayerSpec, Mixture, ModelConfig, RopeSpec
from localrun.model.fields import Fields
from localrun.model.shapes import layer_shapes, outer_shapes
from localrun.model.weights import Namer
from localrun.ops.types import Routing

ROUTERS = ("router", "shared_router")  # not counted: a few in a thousand


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Parameter counts of a model.

    `n_params` are all, `active_params` those that compute one token, `mapped_params` those that stay in the file,
    `vocabulary_params` those of the embedding and of a separate output matrix. `obstacle`: why the model cannot run.
    `caches` is what each layer stores where `config` does not describe it, as in a model that cannot run.
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
        """Parameters that are held in memory."""
        return self.n_params - self.mapped_params


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """Sizes of a mixture: `used` of `n` feed-forward networks of `ffn_size` compute a token."""

    n: int
    used: int
    ffn_size: int

    @property
    def mixture(self) -> Mixture:
        return Mixture(self.n, Routing(self.used))


def shape_of(source: TensorSource) -> ModelShape:
    """Shape from a file's key-values. Raises ModelFileError where they do not say enough.

    A model of an unsupported architecture has one too: its layers are assumed to be alike, and to store what its
    metadata says.
    """
    known, why = config_or_obstacle(source)
    caches: tuple[CacheKind, ...] = ()
    tied = source.format == "gguf" or hf_ties(source.metadata)
    try:
        arch = arch_of(source)
        config, experts = known or arch.config(source), None
        tied = Namer(arch, config, source).tied if source.tensors else tied
    except ModelFileError:
        config = _plain_config(fields_of(source, {"rms_eps": 1e-6}), source)
        caches, experts = unsupported_layers(source.metadata, config), _experts(source)
    return replace(make_shape(config, tied, experts, why), caches=caches)


def loadable_shape(source: TensorSource) -> ModelShape:
    """Like shape_of, of a model with all its tensors. Raises ModelFileError also where one would not load, unless no
    model of its architecture does."""
    shape = shape_of(source)
    if not shape.obstacle:
        check_loadable(source)
    return shape


def make_shape(config: ModelConfig, tied: bool, experts: ExpertSizes | None = None, obstacle: str = "") -> ModelShape:
    """Count the parameters of all matrices but ROUTERS; norms and biases are a few in a million."""
    counts = {name: prod(shape) for name, shape in outer_shapes(config).items() if len(shape) == 2}
    mapped, vocabulary = counts.pop("per_layer_embed", 0), counts["embed"] * (1 if tied else 2)
    n_params = sum(counts.values()) - (counts["embed"] if tied else 0)
    active = sum(counts.values()) - counts["embed"]  # of which a token reads one row
    for spec, n_layers in Counter(config.layers).items():
        counted = spec if experts is None else replace(spec, ffn_size=experts.ffn_size, mixture=experts.mixture)
        of_all, used = layer_params(config, counted)
        n_params += n_layers * of_all
        active += n_layers * used
    return ModelShape(config, n_params + mapped, active, obstacle, mapped_params=mapped, vocabulary_params=vocabulary)


def layer_params(config: ModelConfig, spec: LayerSpec) -> tuple[int, int]:
    """Parameters in the matrices of a layer, and those of them that compute one token."""
    shapes = layer_shapes(config, spec).items()
    counts = {name: prod(shape) for name, shape in shapes if len(shape) == 2 and name not in ROUTERS}
    n_params, mixture = sum(counts.values()), spec.mixture
    if mixture is None:
        return n_params, n_params
    of_experts = sum(counts.get(name, 0) for name in ("gate", "up", "down"))
    return n_params, n_params - of_experts + of_experts // mixture.n_experts * mixture.routing.n_used


def _experts(source: TensorSource) -> ExpertSizes | None:
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
    return ExpertSizes(*counts)  # type: ignore[arg-type]


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
