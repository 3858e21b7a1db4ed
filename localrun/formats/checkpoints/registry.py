"""Quantised checkpoints by their `quant_method`: which are read, and how their matrices are put together."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from localrun.base.sanitize import clean
from localrun.formats.checkpoints.fp8 import join_fp8
from localrun.formats.checkpoints.joined import Joined, Tensors
from localrun.formats.checkpoints.mlx import join_mlx
from localrun.formats.checkpoints.mxfp4 import join_mxfp4
from localrun.formats.checkpoints.nvfp4 import join_nvfp4
from localrun.formats.quant import QUANT_TYPES

Config: TypeAlias = Mapping[str, Any]
MLX = "mlx"  # whose configs name no method
_KINDS = ("format", "quant_algo")  # keys of methods that are several ways to pack


@dataclass(frozen=True, slots=True)
class Method:
    """A `quant_method`: the function that joins its tensors, a word for it in menus where its config has no better one
    and, for the docs, what the tensors hold and how it is held."""

    join: Callable[[Tensors, Config], Joined]
    label: str
    formats: str
    held: str


_FP8 = Method(
    join_fp8,
    "fp8",
    "FP8 (E4M3, E5M2) with a scale for blocks, rows or the whole matrix, or without one",
    "blocks and rows F32, the whole matrix BF16",
)

_NVFP4 = Method(
    join_nvfp4, "nvfp4", "NVFP4 with a scale of the whole matrix, beside matrices in FP8 or floats", "NVFP4"
)

METHODS: dict[str, Method] = {
    "mxfp4": Method(join_mxfp4, "mxfp4", "MXFP4 of gpt-oss's experts", "MXFP4"),
    MLX: Method(
        join_mlx,
        MLX,
        "MLX: affine of 2, 3, 4, 5, 6 and 8 bits, mxfp4, nvfp4 and mxfp8; also different ones of each layer",
        "2 to 4 bits Q4_1, 5 bits Q5_1, 6 and 8 bits F32, mxfp4 MXFP4, nvfp4 NVFP4, mxfp8 BF16",
    ),
    "fp8": _FP8,
    "fbgemm_fp8": _FP8,
    "compressed-tensors float-quantized": _FP8,
    "modelopt FP8": _FP8,
    "compressed-tensors nvfp4-pack-quantized": _NVFP4,
    "modelopt NVFP4": _NVFP4,
    "modelopt W4A16_NVFP4": _NVFP4,
    "modelopt MIXED_PRECISION": _NVFP4,
}


@dataclass(frozen=True, slots=True)
class Quantization:
    """Quantisation of weights as a config.json declares it. No method: there is none."""

    method: str
    config: Config


def quantization_of(metadata: Config) -> Quantization:
    """Of a config.json; of models that also see it may stand with those of their language model."""
    text = metadata.get("text_config")
    for values in (metadata, text if isinstance(text, dict) else {}):
        for key in ("quantization", "quantization_config"):
            found = values.get(key)
            if isinstance(found, dict) and found:
                return Quantization(_method(found), found)
            if found:
                return Quantization(str(found), {})
    return Quantization("", {})


def _method(config: Config) -> str:
    named = config.get("quant_method")
    kind = next((config[key] for key in _KINDS if isinstance(config.get(key), str)), "")
    if named in ("compressed-tensors", "modelopt"):
        return f"{named} {kind}".strip()
    return str(named) if named else MLX if "bits" in config else ""


def join_quantised(tensors: Tensors, metadata: Config) -> Joined:
    """The tensors that a checkpoint keeps in several, by the names that an unquantised one would have.

    Raises ModelFileError for parts that do not fit together. Of a method that is not read there are none.
    """
    found = quantization_of(metadata)
    method = METHODS.get(found.method)
    return method.join(tensors, found.config) if method else {}


def with_joined(tensors: Tensors, joined: Joined) -> Tensors:
    """All tensors as they appear: each one's parts are gone."""
    parts = {part.name for one in joined.values() for part in one.parts}
    kept = {name: info for name, info in tensors.items() if name not in parts}
    return kept | {name: one.info for name, one in joined.items()}


def unread_method(metadata: Config) -> str:
    """Why weights cannot be read, in half a sentence; empty where they can."""
    method = quantization_of(metadata).method
    if not method or method in METHODS:
        return ""
    return f"its weights are quantised in a way that cannot be read ({clean(method[:40], keep_newlines=False)!r})"


def held_as(tensors: Tensors) -> str:
    """A note about the types that joined matrices are held in, and their bits a weight; empty where there are none."""
    types = Counter(info.qtype for info in tensors.values() if info.is_joined and len(info.shape) > 1)
    each = [f"{qtype}, {QUANT_TYPES[qtype].bits:g} bits a weight ({n:,} matrices)" for qtype, n in types.most_common()]
    return f"its packed weights are held as {'; '.join(each)}" if each else ""


def precision_label(metadata: Config) -> str:
    """How weights are quantised, in a word or two: `int4 g64`, `mxfp4`; empty where they are not."""
    found = quantization_of(metadata)
    mode, bits, group = (found.config.get(key) for key in ("mode", "bits", "group_size"))
    if isinstance(mode, str) and mode != "affine":
        return clean(mode[:20], keep_newlines=False)
    if isinstance(bits, int):
        return f"int{bits} g{group}" if isinstance(group, int) and group > 0 else f"int{bits} rows"
    return METHODS[found.method].label if found.method in METHODS else found.method
