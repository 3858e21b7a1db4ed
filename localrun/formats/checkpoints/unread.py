"""Reasons why a quantised checkpoint cannot be read, by its config and the names of its tensors."""

from collections.abc import Collection

from localrun.base.sanitize import clean
from localrun.formats.checkpoints.declared import Config, quantization_of
from localrun.formats.checkpoints.registry import METHODS

_ENDINGS = {  # of tensors that a tool leaves where no config says how they are packed
    ".W_q": "hqq",
    "weight._data": "quanto",
    "weight_qdata": "torchao",
    ".qweight": "GPTQ or AWQ",
    ".weight_packed": "compressed-tensors",
    ".weight.absmax": "bitsandbytes",
    ".scales": "MLX",
    ".weight_scale": "FP8 or integers",
    ".weight_scale_inv": "FP8",
}
_OF_AUTO_ROUND = ("rotation_config", "spinquant_config")
_OFFLINE = ("weight_input", "weight_output")  # where compressed-tensors has a rotation that weights are saved with


def unread_method(metadata: Config, tensors: Collection[str] = ()) -> str:
    """Why the weights cannot be read, in half a sentence; empty where they can."""
    found = quantization_of(metadata)
    if key := _rotation(found.config):
        return f"its activations have to be rotated while it runs ({key}), which cannot be done"
    sparse = found.config.get("sparsity_config")
    if isinstance(sparse, dict) and sparse.get("format") not in (None, "dense"):
        return "its weights leave out their zeros (sparsity_config), which cannot be read"
    method = _of_a_layer(found.config) or found.method
    if method in METHODS:
        return ""
    if method:
        named = clean(method[:60], keep_newlines=False)
        return f"its weights are quantised in a way that cannot be read ({named!r})"
    kind = next((kind for end, kind in _ENDINGS.items() if any(name.endswith(end) for name in tensors)), "")
    return kind and f"its weights are quantised ({kind}, by their names), and its config.json does not say how"


def _of_a_layer(config: Config) -> str:
    """The method of a layer of ModelOpt's MIXED_PRECISION that cannot be read; empty for none."""
    layers = config.get("quantized_layers")
    each = layers.values() if isinstance(layers, dict) else ()
    methods = (f"modelopt {layer.get('quant_algo')}" for layer in each if isinstance(layer, dict))
    return next((method for method in methods if method not in METHODS), "")


def _rotation(config: Config) -> str:
    """The key of a config that has activations rotated while a model runs; empty for none."""
    if key := next((key for key in _OF_AUTO_ROUND if config.get(key)), ""):
        return key
    if (transform := config.get("transform_config")) and not _is_offline(transform):
        return "transform_config"
    steps = config.get("algo_config")
    steps = [steps] if isinstance(steps, dict) else steps if isinstance(steps, list) else []
    rotates = any(isinstance(step, dict) and (step.get("r4") or step.get("online_r1_rotation")) for step in steps)
    return "algo_config" if rotates else ""


def _is_offline(transform: object) -> bool:
    """Whether weights alone are rotated, which a file with them needs no more."""
    groups = transform.get("config_groups") if isinstance(transform, dict) else None
    schemes = groups.values() if isinstance(groups, dict) else [None]
    applied = [scheme.get("apply") if isinstance(scheme, dict) else None for scheme in schemes]
    places = [one for each in applied for one in (each if isinstance(each, list) else [None])]
    return all(isinstance(one, dict) and one.get("location") in _OFFLINE for one in places)
