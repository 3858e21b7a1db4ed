"""Base of decoder architectures; an architecture overrides only what differs. Torch-free."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.gguf_keys import check_keys
from localrun.model.archs.reading import (
    fields_of,
    hf_rope_parameters,
    hf_theta,
    query_scale,
    vocab_size,
    windowed_kinds,
)
from localrun.model.archs.rope_axes import AxisRule, with_axes
from localrun.model.config import LayerSpec, ModelConfig, RecurrentMixer, RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_gguf, rope_from_hf
from localrun.model.weight_ref import RowRanges
from localrun.ops.types import Activation, QKNorm

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
}
NO_MIXTURE = "mixtures of experts of this architecture cannot be run"
Windows = Literal["never", "always", "flagged"]  # whether sliding_window counts; flagged: if use_sliding_window is true


class Arch:
    """One architecture: the files it reads, its tensor names, and its layers."""

    name: ClassVar[str]
    gguf: ClassVar[tuple[str, ...]]  # general.architecture
    hf: ClassVar[tuple[str, ...]]  # config.json "architectures"
    gguf_names: ClassVar[Mapping[str, str]] = {}  # where they differ from GGUF_NAMES
    hf_names: ClassVar[Mapping[str, str]] = {}  # where they differ from HF_NAMES
    permuted_in_gguf: ClassVar[bool] = False  # Q and K rows pair dims (2j, 2j+1) there; ours pair (j, j + dims/2)
    hf_norm_offset: ClassVar[float] = 0.0  # added to norm weights of HF checkpoints
    norms_as_written: ClassVar[frozenset[str]] = frozenset(("gated_norm",))  # but to these
    qkv_fused: ClassVar[bool] = False  # one tensor of q, k and v rows, one of gate and up rows
    qk_norm: ClassVar[QKNorm] = "none"
    pre_norm: ClassVar[bool] = True
    post_norm: ClassVar[bool] = False
    post_eps: ClassVar[float | None] = None  # of these norms; None: that of all
    norms_embedding: ClassVar[bool] = False  # rows of the embedding have a norm without weights
    activation: ClassVar[Activation] = "silu"
    windows: ClassVar[Windows] = "never"
    full_every: ClassVar[int] = 0  # with a window: every n-th layer sees everything; 0: none does
    window_rope: ClassVar[int] = 0  # index of the rope that windowed layers use
    axes: ClassVar[AxisRule | None] = None  # of rotary pairs, where rows of images have angles of their own
    experts: ClassVar[ExpertRules | None] = None  # of layers whose feed-forward part is a mixture of experts
    defaults: ClassVar[Mapping[str, Any]] = {}  # of fields that published files leave out

    def config(self, source: TensorSource) -> ModelConfig:
        """Read and check the hyperparameters of `source`. Raises ModelFileError."""
        fields = self.read_fields(source)
        if source.format != "gguf":
            _check_method(source, fields)
        self.check_supported(fields)
        layers = self.layers(fields)
        ropes = self.ropes(source, fields, self.rope_dims(fields, layers[0].head_dim))
        config = ModelConfig(
            arch=self.name,
            hidden_size=fields["hidden_size"],
            vocab_size=vocab_size(source, fields),
            max_context=fields["max_context"],
            rms_eps=fields["rms_eps"],
            layers=layers,
            ropes=ropes if self.axes is None else with_axes(ropes, self.axes, fields),
            embed_scale=self.embed_scale(fields),
            norms_embedding=self.norms_embedding,
            logit_scale=self.logit_scale(fields),
            logit_softcap=fields["logit_softcap"] or None,
            query_scale=query_scale(fields),
            per_layer_size=fields["per_layer_size"] or 0,
            n_draft_layers=fields["n_draft_layers"],
            draft=self.draft_layer(source, fields),
        )
        if source.format == "gguf":
            check_keys(fields, config)
        return config

    def read_fields(self, source: TensorSource) -> Fields:
        return fields_of(source, self.defaults)

    def check_supported(self, fields: Fields) -> None:
        if fields["n_experts"] and self.expert_rules(fields) is None:
            raise ModelFileError("UNSUPPORTED", NO_MIXTURE, path=fields.path)

    def base_layer(self, fields: Fields) -> LayerSpec:
        """A layer without what depends on its position, from `fields`."""
        heads, hidden = fields["n_heads"], fields["hidden_size"]
        kv_heads = heads if fields["n_kv_heads"] is None else fields["n_kv_heads"]
        if kv_heads and heads % kv_heads:
            raise fields.error(f"{heads} query heads cannot share {kv_heads} key-value heads")
        if fields["head_dim"] is None and hidden % heads:
            raise fields.error(f"a hidden size of {hidden} cannot be split into {heads} heads")
        head_dim = fields["head_dim"] or hidden // heads
        if fields["value_dim"] not in (None, head_dim):
            raise ModelFileError("UNSUPPORTED", "keys and values differ in size", path=fields.path)
        return LayerSpec(
            kind="full",
            window=None,
            rope=0,
            n_heads=heads,
            n_kv_heads=kv_heads,
            head_dim=head_dim,
            ffn_size=fields["ffn_size"],
            activation=self.read_activation(fields),
            pre_norm=self.pre_norm,
            post_norm=self.post_norm,
            qk_norm=self.qk_norm,
            attn_scale=self.attn_scale(fields, head_dim),
            attn_softcap=fields["attn_softcap"] or None,
            residual_scale=fields["residual_scale"],
            post_eps=self.post_eps,
        )

    def layers(self, fields: Fields) -> tuple[LayerSpec, ...]:
        """Every layer, dense or a mixture of experts."""
        n_layers, windowed = fields["n_layers"] - fields["n_draft_layers"], self.windowed_layers(fields)
        if n_layers < 1:
            raise fields.error("all layers are for drafting")
        bases = [self.base_layer(fields.of_layer(index)) for index in range(n_layers if fields.listed() else 1)]
        if any(base.head_dim != bases[0].head_dim for base in bases):
            raise ModelFileError("UNSUPPORTED", "heads differ in size between layers", path=fields.path)
        layers = [self.layer(fields, i, bases[i % len(bases)], windowed[i]) for i in range(n_layers)]
        rules = self.expert_rules(fields)
        if fields["n_experts"] and rules is not None:
            has_experts = self.layers_with_experts(fields)
            layers = [rules.layer(spec, fields) if has_experts[i] else spec for i, spec in enumerate(layers)]
        if any(spec.mixer is None and not spec.n_kv_heads for spec in layers):
            raise fields.error("a layer with attention has no heads of keys and values")
        if not all(spec.ffn_size for spec in layers):
            raise fields.error("a layer has a feed-forward part of no size")
        return tuple(layers)

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        """The layer at `index`, from the common `base`."""
        if not windowed:
            return base
        spec = replace(base, rope=self.window_rope)
        window = self.window(fields)
        return (
            spec if window is None or window >= fields["max_context"] else replace(spec, kind="window", window=window)
        )

    def draft_layer(self, source: TensorSource, fields: Fields) -> LayerSpec | None:
        """The layer of a file that drafts tokens, where the architecture knows how."""
        return None

    def expert_rules(self, fields: Fields) -> ExpertRules | None:
        """Facts about the experts of a file; None where the architecture has none."""
        return self.experts

    def layers_with_experts(self, fields: Fields) -> list[bool]:
        """Whether each layer of a model with experts has some: all but those that the file keeps dense."""
        dense = fields.value("mlp_only_layers") or []
        if not isinstance(dense, list):
            raise fields.error("mlp_only_layers should be a list")
        first, every = fields["n_dense_layers"], fields["expert_every"]
        return [i >= first and (i + 1) % every == 0 and i not in dense for i in range(fields["n_layers"])]

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        if source.format == "gguf":
            return (rope_from_gguf(source, fields, fields["rope_theta"], dims),)
        scaling = hf_rope_parameters(fields)
        return (rope_from_hf(fields, scaling, hf_theta(fields, scaling), dims),)

    def rope_dims(self, fields: Fields, head_dim: int) -> int:
        dims = fields["rope_dims"]
        if dims is None:
            nested = fields.within(hf_rope_parameters(fields))
            factor = nested["partial_rotary_factor"] or fields["partial_rotary_factor"] or 1.0
            dims = int(head_dim * factor)
        if dims > head_dim:
            raise fields.error(f"rotary embeddings of {dims} dims do not fit heads of {head_dim}")
        return int(dims)

    def window(self, fields: Fields) -> int | None:
        """The window in tokens, or None where the model has none."""
        flagged = self.windows == "flagged" and fields.value("use_sliding_window") is True
        return fields["window"] or None if flagged or self.windows == "always" else None

    def windowed_layers(self, fields: Fields) -> list[bool]:
        n_layers = fields["n_layers"]
        if self.window(fields) is None and not (self.window_rope and "sliding_window" in fields.values_by_key):
            return [False] * n_layers  # where windowed layers have a rope of their own, they are told by it
        pattern = self.window_pattern(fields)
        if isinstance(pattern, list):
            if len(pattern) != n_layers:
                raise fields.error(f"the window pattern names {len(pattern)} layers of {n_layers}")
            return pattern
        period = self.full_every if pattern is None else pattern
        return [period == 0 or (index + 1) % period != 0 for index in range(n_layers)]

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """Windowed layers as the file says: one flag per layer, or n for all but every n-th."""
        gguf = fields.format == "gguf"
        if not gguf and (kinds := fields.value("layer_types")) is not None:
            return windowed_kinds(fields, kinds)
        key = f"{fields.prefix}.attention.sliding_window_pattern" if gguf else "sliding_window_pattern"
        pattern = fields.value(key)
        if isinstance(pattern, list):
            return [bool(windowed) for windowed in pattern]
        if pattern is None or (isinstance(pattern, int) and pattern >= 0):
            return pattern
        raise fields.error(f"{clean(key)} should be a number or one flag a layer")

    def fused_rows(self, mixer: RecurrentMixer) -> Mapping[str, RowRanges]:
        """Matrices of a mixer that a file may store in one tensor with others, and their rows there."""
        return {}

    def vector_in_gguf(self, mixer: RecurrentMixer, name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that a GGUF gives a mixer's vector of `sizes`."""
        return sizes

    def read_activation(self, fields: Fields) -> Activation:
        if fields.format == "gguf":
            return self.activation
        name = fields.value("hidden_activation") or fields.value("hidden_act")
        if name is None:
            return self.activation
        if not isinstance(name, str) or name not in ACTIVATIONS:
            raise ModelFileError("UNSUPPORTED", f"unknown activation {clean(str(name))!r}", path=fields.path)
        return ACTIVATIONS[name]

    def attn_scale(self, fields: Fields, head_dim: int) -> float:
        return float(fields["attn_scale"] or head_dim**-0.5)

    def embed_scale(self, fields: Fields) -> float:
        return float(fields["embed_scale"])

    def logit_scale(self, fields: Fields) -> float:
        return 1.0


def _check_method(source: TensorSource, fields: Fields) -> None:
    from localrun.formats.checkpoints.joined import HINT  # a run from a GGUF starts without them
    from localrun.formats.checkpoints.unread import unread_method

    if why := unread_method(source.metadata, source.tensors):
        raise ModelFileError("UNSUPPORTED", why, path=fields.path, hint=HINT)
