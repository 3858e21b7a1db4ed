"""Hyperparameters that take more than a look at one key, for all architectures. Torch-free."""

from collections.abc import Mapping
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.archs.names import GGUF_NAMES
from localrun.model.config import QueryScale
from localrun.model.fields import Fields

LAYER_TYPES = ("full_attention", "sliding_attention")


def fields_of(source: TensorSource, defaults: Mapping[str, Any]) -> Fields:
    """The hyperparameter view of a source; multimodal configs keep their language model under `text_config`."""
    values: Mapping[str, Any] = source.metadata
    prefix = str(values.get("general.architecture", ""))
    fields = Fields(values, source.format, prefix, str(source.metadata.path), defaults)
    if source.format != "gguf" and (text := values.get("text_config")) is not None:
        if not isinstance(text, dict):
            raise fields.error("text_config should be a dictionary")
        fields = Fields({**values, **text}, source.format, prefix, fields.path, defaults)
    if source.format == "gguf":
        fields.check()
    return fields


def hf_rope_parameters(fields: Fields, layer_type: str = "") -> dict[str, Any]:
    """The rope dictionary of a config.json: `rope_parameters` (one, or one a layer type) or older `rope_scaling`."""
    values = fields.value("rope_parameters") or fields.value("rope_scaling") or {}
    if not isinstance(values, dict):
        raise fields.error("rope_parameters should be a dictionary")
    nested = values.get(layer_type or "full_attention")
    return dict(nested) if isinstance(nested, dict) else dict(values)


def hf_theta(fields: Fields, scaling: Mapping[str, Any]) -> float:
    theta = scaling.get("rope_theta")
    if theta is None:
        return float(fields["rope_theta"])
    return float(fields.within(scaling)["rope_theta"])


def query_scale(fields: Fields) -> QueryScale | None:
    """How queries grow with their position, counted in contexts of the size the model was first trained with."""
    if fields.format == "gguf":
        beta, floor = fields["query_beta"], fields["original_context"]
    else:
        nested = fields.within(hf_rope_parameters(fields))
        beta, floor = nested["query_beta"], nested["original_context"]
    if not beta:
        return None
    if floor is None:
        raise fields.error("queries are scaled by their position, but the original size of the context is missing")
    return QueryScale(beta, floor)


def vocab_size(source: TensorSource, fields: Fields) -> int:
    """Rows of the embedding; a GGUF need not say it elsewhere."""
    if source.format != "gguf":
        if fields["vocab_size"] is None:
            raise fields.error("vocab_size is missing")
        return int(fields["vocab_size"])
    info = source.tensors.get(GGUF_NAMES["embed"])
    if info is None:
        declared = fields["vocab_size"] or len(source.metadata.get("tokenizer.ggml.tokens", ()))
        return int(declared)
    if len(info.shape) != 2:
        raise ModelFileError("BAD_TENSOR", "the embedding should be a matrix", path=fields.path)
    return info.shape[0]


def is_recurrent(fields: Fields, index: int, key: str, kinds: Mapping[str, bool] | None = None) -> bool | None:
    """Whether a layer keeps a state, by a list that says of each what it is: in words of `kinds`, or true and false.

    None where the file has no such list.
    """
    said = fields.value(key)
    if said is None:
        return None
    if not isinstance(said, list) or len(said) < fields["n_layers"]:
        raise fields.error(f"{clean(key)} should say of each layer what it is")
    kind = said[index] if kinds is None else kinds.get(str(said[index]))
    if not isinstance(kind, bool):
        raise fields.error(f"{clean(key)} has {clean(str(said[index])[:40])!r} for a layer")
    return kind


def windowed_kinds(fields: Fields, kinds: object) -> list[bool]:
    """Which layers are windowed by the `layer_types` of a config.json."""
    if not isinstance(kinds, list):
        raise fields.error("layer_types should be a list")
    for kind in kinds:
        if kind not in LAYER_TYPES:
            raise ModelFileError("UNSUPPORTED", f"unknown layer type {clean(str(kind)[:40])!r}", path=fields.path)
    return [kind == "sliding_attention" for kind in kinds]
