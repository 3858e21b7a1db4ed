"""Assistants of Gemma 4: small models that draft for one, reading its hidden rows and its cache. Torch-free."""

from dataclasses import replace
from typing import ClassVar

from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.gemma4 import Gemma4
from localrun.model.archs.hf_classes import class_values
from localrun.model.config import Clusters, LayerSpec, ModelConfig
from localrun.model.fields import Fields
from localrun.ops.largest_step import MAX_CANDIDATES


class Gemma4Assistant(Gemma4):
    name = "gemma4-assistant"
    gguf = ("gemma4-assistant",)
    hf: ClassVar[tuple[str, ...]] = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")

    def matches(self, source: TensorSource) -> bool:
        """Whether a file or folder says that it is an assistant."""
        if source.format == "gguf":
            return source.metadata.get("general.architecture") in self.gguf
        named = source.metadata.get("architectures")
        return isinstance(named, list) and any(name in self.hf for name in named)

    def config(self, source: TensorSource) -> ModelConfig:
        """Read and check the hyperparameters; `for_body` says which layers it reads. Raises ModelFileError."""
        config, values = super().config(source), source.metadata
        key = f"{self.gguf[0]}.embedding_length_out" if source.format == "gguf" else "backbone_hidden_size"
        fields = Fields({}, source.format, self.gguf[0], str(source.metadata.path))
        body_size = whole(fields, key, values.get(key))
        layers = tuple(
            replace(spec, k_is_v=False, v_norm=False, image_spans=False, shares_cache=index)
            for index, spec in enumerate(config.layers)
        )
        clusters = None
        if values.get("use_ordered_embeddings") is True:
            names = ("num_centroids", "centroid_intermediate_top_k")
            clusters = Clusters(*(whole(fields, name, values.get(name)) for name in names))
            if config.vocab_size % clusters.n or clusters.n_used > min(clusters.n, MAX_CANDIDATES):
                told = f"{clusters.n_used} of {clusters.n} clusters of {config.vocab_size} tokens"
                raise ModelFileError("UNSUPPORTED", f"{told} cannot be searched", path=fields.path)
        return replace(config, layers=layers, body_size=body_size, clusters=clusters, logit_softcap=None)

    def read_fields(self, source: TensorSource) -> Fields:
        """Read them as of a Gemma 4 whose layers have keys and values of their own, as the sizes of heads are told."""
        path = str(source.metadata.path)
        if source.format == "gguf":
            fields = super().read_fields(source)
            none = {f"{fields.prefix}.{key}": 0 for key in ("nextn_predict_layers", "attention.shared_kv_layers")}
            return Fields({**fields.values_by_key, **none}, "gguf", fields.prefix, path, fields.defaults)
        text = source.metadata.get("text_config")
        known = text if isinstance(text, dict) else {}
        values = class_values({**known, "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text"})
        assert values is not None
        return Fields({**values, "num_kv_shared_layers": 0}, source.format, "", path)


def whole(fields: Fields, key: str, value: object) -> int:
    """A size that has to be there. Raises ModelFileError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 24:
        raise fields.error(f"{key} should be a size")
    return value


def for_body(config: ModelConfig, body: ModelConfig) -> ModelConfig:
    """The config of an assistant for its model: each layer reads the keys and values of the last layer of its kind
    there that has its own. Raises ValueError, which says why not."""
    if body.arch != Gemma4.name:
        raise ValueError(f"it drafts for Gemma 4, not for {body.arch}")
    if (config.body_size, config.vocab_size) != (body.hidden_size, body.vocab_size):
        told = "rows of {:,} numbers and {:,} tokens"
        ours, theirs = (config.body_size, config.vocab_size), (body.hidden_size, body.vocab_size)
        raise ValueError(f"it reads hidden {told.format(*ours)}, the model has {told.format(*theirs)}")
    layers = tuple(read_from(spec, body) for spec in config.layers)
    return replace(config, layers=layers, embed_scale=body.embed_scale, max_context=body.max_context)


def read_from(spec: LayerSpec, body: ModelConfig) -> LayerSpec:
    """A layer of an assistant with the layer of the model that it reads. Its query is that of the next token, whose key
    is not there, so that its window has a token less."""
    own = (index for index, other in enumerate(body.layers) if other.rope == spec.rope and other.shares_cache is None)
    source = max(own, default=None)
    if source is None:
        raise ValueError("it reads layers of a kind that the model does not have")
    other = body.layers[source]
    if (spec.head_dim, spec.n_kv_heads) != (other.head_dim, other.n_kv_heads):
        raise ValueError("its heads have other sizes than those of the model")
    windows = [one.window for one in (spec, other) if one.window is not None]
    if not windows:
        return replace(spec, shares_cache=source)
    return replace(spec, kind="window", window=min(windows) - 1, shares_cache=source)
