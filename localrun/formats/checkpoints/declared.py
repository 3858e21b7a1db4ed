"""Quantisation as a config.json declares it: its method, and how the method packs."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from localrun.base.dataclass import dataclass

Config: TypeAlias = Mapping[str, Any]
MLX = "mlx"  # whose configs name no method
_KEYS = ("quantization", "quantization_config", "compression_config")  # the last as compressed-tensors once wrote it
# Methods that are several ways to pack, and the keys that tell which.
_KINDS = {
    "compressed-tensors": ("format",),
    "modelopt": ("quant_algo",),
    "awq": ("version", "format", "checkpoint_format"),
    "gptq": ("checkpoint_format", "format"),
    "auto-round": ("packing_format",),
}


@dataclass(frozen=True, slots=True)
class Quantization:
    """Quantisation of weights as a config.json declares it. An empty method: none."""

    method: str
    config: Config


def quantization_of(metadata: Config) -> Quantization:
    """Quantisation in a config.json; multimodal models may declare it with their language model."""
    text = metadata.get("text_config")
    for values in (metadata, text if isinstance(text, dict) else {}):
        for key in _KEYS:
            found = values.get(key)
            if isinstance(found, dict) and found:
                return Quantization(_method(found), found)
            if found:
                return Quantization(str(found), {})
    return Quantization("", {})


def _method(config: Config) -> str:
    unnamed = MLX if any(key in config for key in ("bits", "group_size", "mode")) else ""
    named = str(config.get("quant_method") or unnamed).removeprefix("intel/")
    if named == "bitsandbytes":
        is_four = config.get("load_in_4bit") or config.get("_load_in_4bit")
        return f"{named} {config.get('bnb_4bit_quant_type') or 'fp4' if is_four else 'int8'}"
    if named == "quark":
        return f"quark {_quark_type(config)}".strip()
    if named == "modelopt" and config.get("quant_algo") is None:
        return ""  # the KV cache alone
    kind = next((config[key] for key in _KINDS.get(named, ()) if isinstance(config.get(key), str)), "")
    kind = kind.lower() if named == "awq" else kind.removeprefix("auto_round:")
    if named == "auto-round" and kind in ("", "auto_round"):
        kind = _auto_round_floats(config) or kind
    return f"{named} {kind}".strip()


def _auto_round_floats(config: Config) -> str:
    """The type of AutoRound's codes where they are no whole numbers, and nothing else tells how they are packed."""
    kind = config.get("data_type")
    return kind if isinstance(kind, str) and not kind.startswith("int") else ""


def _quark_type(config: Config) -> str:
    """Type of most weights in Quark's words, such as `fp4` or `int4 per_group`; empty where it is none, or several at
    once."""
    common = config.get("global_quant_config")
    weight = common.get("weight") if isinstance(common, dict) else None
    kind, scheme = (weight.get("dtype"), weight.get("qscheme")) if isinstance(weight, dict) else (None, None)
    if not isinstance(kind, str):
        return ""
    return f"{kind} {scheme}" if "int" in kind and isinstance(scheme, str) else kind
