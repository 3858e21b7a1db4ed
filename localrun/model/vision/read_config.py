"""Config of a tower: from config.json and the preprocessor's settings beside it, or from the keys of a projector."""

from collections.abc import Mapping, Sequence
from math import isqrt
from pathlib import Path
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.json_files import read_json
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorSource
from localrun.images.sizes import SmartResize
from localrun.model.vision.config import Colour, TowerConfig
from localrun.ops.types import SingleActivation

ACTIVATIONS: Mapping[str, SingleActivation] = {
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
    "gelu": "gelu_erf",
    "quick_gelu": "gelu_quick",
}
MIN_PIXELS, MAX_PIXELS = 65_536, 16_777_216  # of Qwen3-VL, where no file says so: projectors never do
HF_EPS = 1e-6  # of every layer norm in the class of transformers
LIMITS = {  # of numbers in files
    "n_layers": (1, 256),
    "hidden_size": (8, 1 << 14),
    "n_heads": (1, 256),
    "ffn_size": (8, 1 << 16),
    "out_size": (8, 1 << 16),
    "patch_size": (2, 256),
    "merge": (1, 8),
    "pool": (1, 8),
    "head_dim": (8, 512),
    "n_positions": (1, 1 << 16),
    "min_pixels": (1, 1 << 28),
    "max_pixels": (1, 1 << 28),
}
PREPROCESSORS = ("preprocessor_config.json", "processor_config.json")


def tower_config(source: TensorSource) -> TowerConfig:
    """The checked config of a tower of Qwen's in a checkpoint, or in a projector's GGUF. Raises ModelFileError."""
    return gguf_tower(source.metadata, source) if source.format == "gguf" else hf_tower(source)


def hf_tower(source: TensorSource) -> TowerConfig:
    path = source.metadata.path
    values = source.metadata.get("vision_config")
    vision = Metadata(values if isinstance(values, dict) else {}, path)
    pixels = preprocessor_of(path.parent)
    act = vision.get_str("hidden_act", "gelu_pytorch_tanh")
    if act not in ACTIVATIONS:
        raise unsupported(path, f"the activation {clean(act)!r} of its tower")
    size = pixels.get("size")
    size = size if isinstance(size, dict) else {}
    numbers = {
        "n_layers": vision.get_int("depth", 27),
        "hidden_size": vision.get_int("hidden_size", 1152),
        "n_heads": vision.get_int("num_heads", 16),
        "ffn_size": vision.get_int("intermediate_size", 4304),
        "out_size": vision.get_int("out_hidden_size", 3584),
        "patch_size": vision.get_int("patch_size", 16),
        "merge": vision.get_int("spatial_merge_size", 2),
        "n_positions": vision.get_int("num_position_embeddings", 2304),
        "min_pixels": pixels.get_int("min_pixels", size.get("shortest_edge", MIN_PIXELS)),
        "max_pixels": pixels.get_int("max_pixels", size.get("longest_edge", MAX_PIXELS)),
    }
    if vision.get_int("temporal_patch_size", 2) != 2 or vision.get_int("in_channels", 3) != 3:
        raise unsupported(path, "patches of its tower that have not two frames of three colours")
    usual = [8, 16, 24] if vision.get_str("model_type", "").startswith("qwen3_vl") else []
    tapped = vision.get_array("deepstack_visual_indexes", int, usual)
    return checked(path, numbers, ACTIVATIONS[act], HF_EPS, tapped, pixels)


def gguf_tower(metadata: Metadata, source: TensorSource) -> TowerConfig:
    path = metadata.path
    key = "clip.vision."
    side = metadata.get_int(f"{key}image_size") // max(metadata.get_int(f"{key}patch_size"), 1)
    numbers = {
        "n_layers": metadata.get_int(f"{key}block_count"),
        "hidden_size": metadata.get_int(f"{key}embedding_length"),
        "n_heads": metadata.get_int(f"{key}attention.head_count"),
        "ffn_size": metadata.get_int(f"{key}feed_forward_length"),
        "out_size": metadata.get_int(f"{key}projection_dim"),
        "patch_size": metadata.get_int(f"{key}patch_size"),
        "merge": metadata.get_int(f"{key}spatial_merge_size", 2),
        "n_positions": side**2,
        "min_pixels": MIN_PIXELS,
        "max_pixels": MAX_PIXELS,
    }
    flags = metadata.get_array(f"{key}is_deepstack_layers", bool, [])
    tapped = [layer for layer, is_tapped in enumerate(flags) if is_tapped]
    eps = metadata.get_float(f"{key}attention.layer_norm_epsilon", HF_EPS)
    colours = Metadata({name: metadata.get(f"{key}{name}") for name in ("image_mean", "image_std")}, path)
    return checked(path, numbers, "gelu", eps, tapped, colours)


def preprocessor_of(folder: Path) -> Metadata:
    """How images are scaled, as the files beside a checkpoint say; empty where there are none."""
    for name in PREPROCESSORS:
        if (folder / name).is_file():
            values = read_json(folder / name, "BAD_CONFIG")
            inner = values.get("image_processor")
            return Metadata(inner if isinstance(inner, dict) else values, folder / name)
    return Metadata({}, folder)


def checked(
    path: Path,
    numbers: Mapping[str, int],
    activation: SingleActivation,
    eps: float,
    tapped: Sequence[int],
    colours: Metadata,
) -> TowerConfig:
    """The config, if all numbers are possible and fit each other."""
    check_numbers(path, numbers)
    shape: dict[str, Any] = dict(numbers)
    bounds = shape.pop("min_pixels"), shape.pop("max_pixels")
    hidden, n_heads, n_positions = (shape[name] for name in ("hidden_size", "n_heads", "n_positions"))
    if hidden % n_heads or (hidden // n_heads) % 8 or hidden // n_heads > 512:
        raise wrong(path, f"{n_heads} heads cannot share {hidden} numbers of its tower")
    if isqrt(n_positions) ** 2 != n_positions:
        raise wrong(path, f"the {n_positions:,} positions of its tower are no square")
    if bounds[0] > bounds[1] or not 0.0 < eps < 0.1:
        raise wrong(path, "bounds of pixels or of a norm of its tower are impossible")
    if sorted(set(tapped)) != list(tapped) or any(not 0 <= layer < shape["n_layers"] for layer in tapped):
        raise wrong(path, "layers of its tower that are tapped are not in order, or not there")
    mean, std = (colour(colours, name) for name in ("image_mean", "image_std"))
    if min(std) <= 0.0:
        raise wrong(path, "image_std has to be above 0")
    sizes = SmartResize(shape["patch_size"] * shape["merge"], *bounds)
    return TowerConfig(**shape, eps=eps, activation=activation, tapped=tuple(tapped), sizes=sizes, mean=mean, std=std)


def check_numbers(path: Path, numbers: Mapping[str, int]) -> None:
    """Raise ModelFileError for a number of a tower that no tower has."""
    for name, number in numbers.items():
        low, high = LIMITS[name]
        if type(number) is not int or not low <= number <= high:
            raise wrong(path, f"{name} of its tower is {clean(str(number))}, not {low:,} … {high:,}")


def colour(values: Metadata, name: str) -> Colour:
    """Three numbers, 0.5 each where there are none."""
    found = values.get(name)
    if found is None:
        return (0.5, 0.5, 0.5)
    if isinstance(found, list) and len(found) == 3 and all(isinstance(x, int | float) and abs(x) < 1e3 for x in found):
        return (float(found[0]), float(found[1]), float(found[2]))
    raise wrong(values.path, f"{name} has to be three numbers")


def wrong(path: Path, told: str) -> ModelFileError:
    return ModelFileError("BAD_CONFIG", told, path=str(path))


def unsupported(path: Path, what: str) -> ModelFileError:
    hint = "docs/images.md lists the models whose images are read"
    return ModelFileError("UNSUPPORTED", f"{what} are not supported", path=str(path), hint=hint)
