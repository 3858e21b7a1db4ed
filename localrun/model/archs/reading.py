"""Hyperparameters that need more than one key, for all architectures. Torch-free."""

from collections.abc import Mapping
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.archs.hf_classes import aliased_keys, class_values, theta_of_class
from localrun.model.archs.names import DRAFT_PREFIXES, GGUF_NAMES, HF_NAMES
from localrun.model.config import QueryScale
from localrun.model.fields import Fields

FULL, WINDOWED = LAYER_TYPES = ("full_attention", "sliding_attention")


def fields_of(source: TensorSource, defaults: Mapping[str, Any]) -> Fields:
    """The hyperparameters of a source; `defaults` are those of a GGUF.

    Multimodal configs keep their language model under `text_config`. For an unknown class every key counts, and none
    has a default.
    """
    values: Mapping[str, Any] = source.metadata
    prefix = str(values.get("general.architecture", ""))
    fields = Fields(values, source.format, prefix, str(source.metadata.path), defaults)
    if source.format == "gguf":
        fields.check()
        return fields
    text = values.get("text_config")
    if text is not None and not isinstance(text, dict):
        raise fields.error("text_config should be a dictionary")
    of_class = class_values(values)
    if of_class is None:
        return Fields({**values, **(text or {})}, source.format, prefix, fields.path, defaults)
    theta, spellings = theta_of_class(values), aliased_keys(values)
    return Fields(of_class, source.format, prefix, fields.path, theta, spellings)


def hf_rope_parameters(fields: Fields, layer_type: str = FULL) -> dict[str, Any]:
    """The rope dictionary of a config.json as transformers reads it.

    `rope_scaling` goes before `rope_parameters`, and where that has one dictionary for each layer type, it changes that
    of the full layers. A base or a share of the dims that only the other one has stays. Empty for windowed layers where
    there is only one dictionary.
    """
    scaling, parameters = (_dictionary(fields, key, fields.value(key)) for key in ("rope_scaling", "rope_parameters"))
    if _by_layer_type(scaling):
        scaling, parameters = {}, scaling
    if _by_layer_type(parameters):
        own = _dictionary(fields, layer_type, parameters.get(layer_type))
        return {**own, **scaling} if layer_type == FULL else own
    if layer_type != FULL:
        return {}
    if not scaling:
        return parameters
    kept = [key for key in ("rope_theta", "partial_rotary_factor") if key in parameters]
    return {key: parameters[key] for key in kept if fields.value(key) is None} | scaling


def _dictionary(fields: Fields, key: str, values: object) -> dict[str, Any]:
    """A rope dictionary, its type in the newer spelling; empty where there is none."""
    if values is not None and not isinstance(values, dict):
        raise fields.error(f"{key} should be a dictionary")
    values = values or {}
    return {"rope_type": values["type"], **values} if "type" in values else dict(values)


def _by_layer_type(values: Mapping[str, Any]) -> bool:
    return any(isinstance(values.get(kind), dict) for kind in LAYER_TYPES)


def hf_theta(fields: Fields, scaling: Mapping[str, Any]) -> float:
    """The base of a rope dictionary, else of the config, else of its class."""
    if scaling.get("rope_theta") is not None:
        return float(fields.within(scaling)["rope_theta"])
    if fields.values_by_key.get("rope_theta", 0) is None:
        raise fields.error("rope_theta is null")
    return float(fields["rope_theta"])


def query_scale(fields: Fields) -> QueryScale | None:
    """Scale of queries by position, counted in contexts of the size the model was first trained with."""
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


def draft_place(source: TensorSource, index: int) -> str | None:
    """Prefix of the layer that drafts, which is layer `index` of a GGUF; None where the file has none."""
    prefixes: tuple[str, ...] = ("",)
    name = GGUF_NAMES["draft_proj"].format(index)
    if source.format != "gguf":
        prefixes, name = DRAFT_PREFIXES, HF_NAMES["draft_proj"]
    return next((prefix for prefix in prefixes if prefix + name in source.tensors), None)


def vocab_size(source: TensorSource, fields: Fields) -> int:
    """Rows of the embedding, which a GGUF need not give as a key."""
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
    """Whether a layer keeps a state, by a list with an entry for each layer: in words of `kinds`, or true and false.

    None where the file has no such list.
    """
    said = fields.value(key)
    if said is None:
        return None
    if not isinstance(said, list) or len(said) < fields["n_layers"]:
        raise fields.error(f"{fields.spelled(key)} should give the kind of each layer")
    kind = said[index] if kinds is None else kinds.get(str(said[index]))
    if not isinstance(kind, bool):
        raise fields.error(f"{fields.spelled(key)} has {clean(str(said[index])[:40])!r} for a layer")
    return kind


def windowed_kinds(fields: Fields, kinds: object) -> list[bool]:
    """Whether each layer is windowed, by the `layer_types` of a config.json."""
    if not isinstance(kinds, list):
        raise fields.error("layer_types should be a list")
    for kind in kinds:
        if kind not in LAYER_TYPES:
            raise ModelFileError("UNSUPPORTED", f"unknown layer type {clean(str(kind)[:40])!r}", path=fields.path)
    return [kind == "sliding_attention" for kind in kinds]
