"""Sampling that the makers of a model recommend, from its file."""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from localrun.base.request import Sampling
from localrun.base.setting_rows import SETTINGS
from localrun.formats.files import bad_file
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors import SafetensorsFolder
from localrun.formats.source import TensorSource

_IN_GGUF = {  # below general.sampling.
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "penalty_repeat",
}
_IN_GENERATION_CONFIG = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
}
_INTEGERS = ("top_k",)


def own_sampling(source: TensorSource) -> Sampling:
    """Generation settings that a model brings along; what is no number or out of range is passed over. Raises
    ModelFileError for NaN and infinities."""
    if isinstance(source, SafetensorsFolder):
        return _read(source.generation_config, _IN_GENERATION_CONFIG)
    return _read(source.metadata, _IN_GGUF, "general.sampling.")


def _read(values: Metadata, names: Mapping[str, str], prefix: str = "") -> Sampling:
    found: dict[str, Any] = {}
    for ours, theirs in names.items():
        value = values.get(prefix + theirs)
        if isinstance(value, float) and not math.isfinite(value):
            raise bad_file("BAD_CONFIG", f"{prefix}{theirs} is {value}, not a finite number", values.path)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                found[ours] = SETTINGS[ours].parse(int(value) if ours in _INTEGERS else float(value))
    return Sampling(**found)
