"""Reading of rotary-embedding settings: every scaling rule becomes divisors of the base frequencies. Torch-free."""

import math
from array import array
from collections.abc import Mapping
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.config import RopeSpec
from localrun.model.fields import Fields

SCALING_TYPES = ("none", "default", "dynamic", "mrope", "linear", "llama3", "yarn", "longrope", "su", "proportional")
# dynamic scales only beyond max_context, where we never go; the three positions of mrope are equal for text
LONGROPE = ("longrope", "su")
LONG_FACTORS = "rope_factors_long.weight"  # of a GGUF
STILL = 1e30  # divides the frequency of a pair that does not turn
GGUF_KEYS = {  # keys below `rope.scaling.`: llama.cpp's spelling, then Ollama's
    "rope_type": "type",
    "factor": "factor",
    "original_max_position_embeddings": "original_context_length",
    "attention_factor": "attn_factor",
    "beta_fast": "yarn_beta_fast beta_fast",
    "beta_slow": "yarn_beta_slow beta_slow",
    "mscale": "mscale",
    "mscale_all_dim": "yarn_log_multiplier mscale_all_dim",
    "ext_factor": "yarn_ext_factor extrapolation_factor",
    "yarn_attn_factor": "yarn_attn_factor",
}
UNSCALED = ("none", "default", "dynamic", "mrope")


def rope_from_gguf(
    source: TensorSource,
    fields: Fields,
    theta: float,
    dims: int,
    truncate: bool = True,
    usual: str = "linear",
    of_latents: bool = False,
) -> RopeSpec:
    """The rope of a GGUF file: scaling keys under `rope.scaling.`, divisors in small F32 tensors.

    `truncate`: whether the ramp of YaRN begins and ends at whole pairs. `usual`: the type where there is but a factor.
    """
    found = gguf_scaling(fields, of_latents)
    scaling = {name: value for name, (_, value) in found.items()}
    scaled = scaling["factor"] not in (0.0, 1.0)  # zero means one there
    scaling["rope_type"] = scaling["rope_type"] or (usual if scaled else "none")
    if scaling["mscale"] is None:  # of latents what all dims have, by which such files leave it out
        scaling["mscale"] = (of_latents and scaling["mscale_all_dim"]) or 1.0
    scaling["truncate"] = truncate
    fields = fields.spelled_as({name: key for name, (key, _) in found.items()})
    check_dims(fields, dims)
    whole = 1.0 if scaling["rope_type"] == "yarn" else 0.0  # how much of YaRN there is; -1 leaves it to the type
    for name, honoured in (("ext_factor", (whole, -1.0)), ("yarn_attn_factor", (1.0,))):
        key, value = found[name]
        if value is not None and value not in honoured:
            shown = clean(f"{key} = {value!r}"[:80])
            raise ModelFileError("UNSUPPORTED", f"{shown} is not supported: only {honoured[0]:g} is", path=fields.path)
    key, magnitude = found["attention_factor"]
    longer = (*LONGROPE, "yarn")
    if magnitude not in (None, 0.0, 1.0) and scaling["rope_type"] not in longer and LONG_FACTORS not in source.tensors:
        shown = clean(f"{key} = {magnitude!r}"[:80])
        raise ModelFileError("UNSUPPORTED", f"{shown} is supported of {', '.join(longer)} only", path=fields.path)
    if scaled and not {"rope_freqs.weight", LONG_FACTORS}.isdisjoint(source.tensors):
        shown = clean(f"{found['factor'][0]} = {scaling['factor']!r}"[:80])
        raise ModelFileError("UNSUPPORTED", f"{shown} is not supported beside divisors in tensors", path=fields.path)
    if "rope_freqs.weight" in source.tensors:
        return RopeSpec(theta, dims, divisors=_read_divisors(source, fields, "rope_freqs.weight", dims))
    if LONG_FACTORS in source.tensors:
        scaling["rope_type"] = "longrope"
        scaling["long_factor"] = _read_divisors(source, fields, LONG_FACTORS, dims)
        scaling["short_factor"] = _read_divisors(source, fields, "rope_factors_short.weight", dims)
        scaling["attention_factor"] = scaling["attention_factor"] or 1.0  # never derived there
    return scaled_rope(fields, scaling, theta, dims)


def gguf_scaling(fields: Fields, of_latents: bool) -> dict[str, tuple[str, Any]]:
    """The key of a GGUF and its value for every word of a rope dictionary.

    Files with latent attention have a tenth of `mscale_all_dim`, under llama.cpp's name for it.
    """
    found = {name: fields.first(f"{fields.prefix}.rope.scaling.", spellings) for name, spellings in GGUF_KEYS.items()}
    if found["factor"][1] is None:
        key, factor = fields.first(f"{fields.prefix}.rope.", "scale_linear")
        found["factor"] = key, 1.0 if factor is None else factor
    key, all_dims = found["mscale_all_dim"]
    if of_latents and key.endswith("log_multiplier") and isinstance(all_dims, float):
        found["mscale_all_dim"] = key, 10.0 * all_dims
    return found


def latent_scale(fields: Fields, scaling: Mapping[str, Any]) -> float:
    """Factor on the scores of latent attention: the square of YaRN's magnitude for all dims, those that do not turn
    among them (DeepSeek-V2). `scaling`: the rope dictionary of a config.json."""
    if fields.format == "gguf":
        found = gguf_scaling(fields, of_latents=True)
        fields = fields.spelled_as({name: key for name, (key, _) in found.items()})
        scaling = {name: value for name, (_, value) in found.items()}
    all_dims = _optional(fields, scaling, "mscale_all_dim")
    if not all_dims or scaling.get("rope_type") in (None, *UNSCALED):
        return 1.0
    return _magnitude(all_dims, _number(fields, scaling, "factor", 1.0, 1e6)) ** 2


def rope_from_hf(fields: Fields, scaling: Mapping[str, Any], theta: float, dims: int) -> RopeSpec:
    """The rope of a config.json: `scaling` is its rope_scaling or rope_parameters dictionary."""
    own = fields.value("original_max_position_embeddings")  # Phi-3's, which goes first
    original = scaling.get("original_max_position_embeddings") if own is None else own
    rope_type = scaling.get("rope_type")
    if rope_type is None and "factor" in scaling:
        raise fields.error("rope scaling has a factor and no rope_type")
    return scaled_rope(
        fields,
        {**scaling, "rope_type": rope_type or "default", "original_max_position_embeddings": original},
        theta,
        dims,
    )


def scaled_rope(fields: Fields, scaling: Mapping[str, Any], theta: float, dims: int) -> RopeSpec:
    """Turn one scaling rule into a RopeSpec. Raises ModelFileError for unknown rules and unusable numbers."""
    check_dims(fields, dims)
    rope_type = scaling["rope_type"]
    if not isinstance(rope_type, str):
        raise fields.error(f"the type of rope scaling should be a text, not {clean(repr(rope_type)[:40])}")
    if rope_type not in SCALING_TYPES:
        shown = f"unknown rope scaling {clean(rope_type[:40])!r}; known: {', '.join(SCALING_TYPES)}"
        raise ModelFileError("UNSUPPORTED", shown, path=fields.path)
    if rope_type in UNSCALED:
        return RopeSpec(theta, dims, original_context=fields["max_context"] if rope_type == "dynamic" else None)
    if rope_type in LONGROPE:
        return _longrope(fields, scaling, theta, dims)
    if rope_type == "proportional":
        return RopeSpec(theta, dims, divisors=_proportional_divisors(fields, scaling, dims))
    factor = _number(fields, scaling, "factor", 1.0, 1e6)
    if rope_type == "linear":
        return RopeSpec(theta, dims, divisors=(factor,) * (dims // 2))
    original = _number(fields, scaling, "original_max_position_embeddings", 1, 1 << 27, fields["max_context"])
    if rope_type == "llama3":
        return RopeSpec(theta, dims, divisors=_llama3_divisors(fields, scaling, theta, dims, factor, original))
    magnitude = _optional(fields, scaling, "attention_factor")
    if magnitude is None or fields.format == "gguf":  # a GGUF's attn_factor multiplies YaRN's own
        magnitude = _yarn_magnitude(fields, scaling, factor) * (magnitude or 1.0)
    divisors = _yarn_divisors(fields, scaling, theta, dims, factor, original)
    return RopeSpec(theta, dims, divisors=divisors, magnitude=magnitude)


def check_dims(fields: Fields, dims: int) -> None:
    if dims % 2 or dims < 2:
        raise fields.error(f"rotary embeddings need an even number of dims, not {dims}")


def _llama3_divisors(
    fields: Fields, scaling: Mapping[str, Any], theta: float, dims: int, factor: float, original: float
) -> tuple[float, ...]:
    """Divisors of Llama 3.1: long wavelengths are slowed by `factor`, short ones kept, others blended."""
    low = _number(fields, scaling, "low_freq_factor", 1e-6, 1e6, 1.0)
    high = _number(fields, scaling, "high_freq_factor", 1e-6, 1e6, 4.0)
    if not low < high:
        raise fields.error("llama3 rope scaling needs low_freq_factor < high_freq_factor")

    def divisor(pair: int) -> float:
        wavelength = 2 * math.pi * theta ** (2 * pair / dims)
        if wavelength < original / high:
            return 1.0
        if wavelength > original / low:
            return factor
        smooth = (original / wavelength - low) / (high - low)
        return float(1.0 / ((1 - smooth) / factor + smooth))

    return tuple(divisor(pair) for pair in range(dims // 2))


def _proportional_divisors(fields: Fields, scaling: Mapping[str, Any], dims: int) -> tuple[float, ...]:
    """Divisors of Gemma 4: the first pairs of a whole head turn, the others are fixed."""
    share = _number(fields, scaling, "partial_rotary_factor", 0.0, 1.0, 1.0)
    factor, n_turning = _number(fields, scaling, "factor", 1.0, 1e6, 1.0), int(share * dims // 2)
    return (factor,) * n_turning + (STILL,) * (dims // 2 - n_turning)


def _yarn_divisors(
    fields: Fields, scaling: Mapping[str, Any], theta: float, dims: int, factor: float, original: float
) -> tuple[float, ...]:
    """YaRN (Peng et al. 2023): a ramp over pairs between extrapolation and interpolation by `factor`."""
    fast = _number(fields, scaling, "beta_fast", 1e-3, 1e6, 32.0)
    slow = _number(fields, scaling, "beta_slow", 1e-3, 1e6, 1.0)

    def pair_of(rotations: float) -> float:
        return dims * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_of(fast), pair_of(slow)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    width = max(high - low, 0.001)

    def divisor(pair: int) -> float:
        interpolated = min(1.0, max(0.0, (pair - low) / width))
        return 1.0 / (interpolated / factor + (1.0 - interpolated))

    return tuple(divisor(pair) for pair in range(dims // 2))


def _yarn_magnitude(fields: Fields, scaling: Mapping[str, Any], factor: float) -> float:
    mscale, all_dims = _optional(fields, scaling, "mscale"), _optional(fields, scaling, "mscale_all_dim")
    if mscale and all_dims:
        return _magnitude(mscale, factor) / _magnitude(all_dims, factor)
    return _magnitude(1.0, factor)


def _magnitude(mscale: float, factor: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _longrope(fields: Fields, scaling: Mapping[str, Any], theta: float, dims: int) -> RopeSpec:
    """LongRoPE: one table of divisors below the original context, another above it."""
    short = _factors(fields, scaling, "short_factor", dims)
    long = _factors(fields, scaling, "long_factor", dims)
    original = int(_number(fields, scaling, "original_max_position_embeddings", 2, 1 << 27, fields["max_context"]))
    magnitude = _optional(fields, scaling, "attention_factor")
    if magnitude is None:
        ratio = _optional(fields, scaling, "factor") or fields["max_context"] / original
        magnitude = math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
    return RopeSpec(theta, dims, short, long, original, magnitude, magnitude)


def _factors(fields: Fields, scaling: Mapping[str, Any], name: str, dims: int) -> tuple[float, ...]:
    values = scaling.get(name)
    if isinstance(values, (list, tuple)) and len(values) == dims // 2 and all(map(_is_divisor, values)):
        return tuple(float(value) for value in values)
    raise fields.error(f"rope scaling needs {dims // 2} positive numbers in {fields.spelled(name)}")


def _is_divisor(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 1e-6 <= value <= 1.001 * STILL


def _number(
    fields: Fields, scaling: Mapping[str, Any], name: str, low: float, high: float, default: float | None = None
) -> float:
    value = scaling.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        shown = clean(repr(value)[:24])
        raise fields.error(f"rope scaling needs {fields.spelled(name)} between {low:g} and {high:g}, not {shown}")
    return float(value)


def _optional(fields: Fields, scaling: Mapping[str, Any], name: str) -> float | None:
    """A factor that a rule may leave out, to be derived."""
    return None if scaling.get(name) is None else _number(fields, scaling, name, 0.0, 1e6)


def _read_divisors(source: TensorSource, fields: Fields, name: str, dims: int) -> tuple[float, ...]:
    info = source.tensors.get(name)
    if info is None or info.qtype != "F32" or info.shape != (dims // 2,):
        raise ModelFileError("BAD_TENSOR", f"{name} should hold {dims // 2} F32 values", path=str(source.path))
    values = tuple(array("f", bytes(source.read(name))))
    if not all(map(_is_divisor, values)):
        raise ModelFileError("BAD_TENSOR", f"{name} holds a value that cannot divide", path=str(source.path))
    return values
