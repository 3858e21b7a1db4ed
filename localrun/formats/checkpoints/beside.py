"""Quantisation declared in a file beside config.json: by ModelOpt, and by early tools for GPTQ and AWQ."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from localrun.formats.checkpoints.declared import quantization_of

METHODS_BESIDE = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq", "quant_config.json": "awq"}
_SPELLINGS = {"w_bit": "bits", "q_group_size": "group_size"}  # of AWQ's own file


def with_declared(
    config: Mapping[str, Any], names: Collection[str], read: Callable[[str], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """A config.json with the quantisation from one of the files `names`, where it has none itself."""
    if quantization_of(config).method:
        return config
    for name, method in METHODS_BESIDE.items():
        values = read(name) if name in names else {}
        declared = values.get("quantization") if method == "modelopt" else values
        if isinstance(declared, dict) and declared:
            spelled = {_SPELLINGS.get(key, key): value for key, value in declared.items()}
            return {**config, "quantization_config": {"quant_method": method, **spelled}}
    return config
