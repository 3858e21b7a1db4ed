"""One model on disk, and how files and folders become one: names and sizes, and contents only where they must be."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from localrun.base.errors import LocalrunError
from localrun.formats.json_files import read_object
from localrun.hub.names import parse_file_name

Source = Literal["builtin", "models", "hub", "lmstudio", "ollama", "path"]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One model in one precision. `bytes` counts all shards; `last_used` is seconds since 1970, None for never."""

    name: str
    precision: str
    path: Path  # the .gguf (first shard), or the safetensors folder
    bytes: int
    format: Literal["gguf", "safetensors"]
    source: Source
    last_used: float | None = None


def stored_at(path: Path, source: Source = "path", name: str = "") -> list[StoredModel]:
    """The models in a file or folder: one for a .gguf (any shard) or a safetensors folder, several for GGUFs."""
    if path.is_dir():
        return [*safetensors_in(path, source, name), *ggufs_in(path, source, name)]
    return [_gguf(path, shards_of(path) or [path], source, name)]


def ggufs_in(place: Path, source: Source, name: str = "") -> Iterator[StoredModel]:
    for path in entries(place):
        if path.suffix != ".gguf" or path.name.startswith("mmproj") or not path.is_file():
            continue
        shards = shards_of(path)
        if shards and shards[0] == path:
            yield _gguf(path, shards, source, name)


def _gguf(path: Path, shards: list[Path], source: Source, name: str) -> StoredModel:
    parts = parse_file_name(path.name)
    size = sum(shard.stat().st_size for shard in shards)
    precision = parts.precision or _precision_inside(shards[0])
    return StoredModel(name or parts.model, precision, shards[0], size, "gguf", source)


def _precision_inside(path: Path) -> str:
    """The type that most of the bytes have, for files whose name does not say; empty for a file that cannot be read."""
    from localrun.formats.gguf import open_gguf

    try:
        tensors = open_gguf(path).tensors.values()
    except LocalrunError:
        return ""
    sizes = Counter[str]()
    for tensor in tensors:
        sizes[tensor.qtype] += tensor.nbytes
    return sizes.most_common(1)[0][0] if sizes else ""


def shards_of(path: Path) -> list[Path]:
    """Every file of the split model that `path` belongs to, the first one first; empty when one is missing."""
    parts = parse_file_name(path.name)
    if parts.n_shards == 1:
        return [path]
    of = f"-of-{parts.n_shards:05d}.gguf"
    head = path.name[: -len(of) - 6]
    shards = [path.with_name(f"{head}-{number:05d}{of}") for number in range(1, parts.n_shards + 1)]
    return shards if all(shard.is_file() for shard in shards) else []


def safetensors_in(place: Path, source: Source, name: str) -> Iterator[StoredModel]:
    """The model of weights beside a config.json; one that cannot be read is told by `stored_obstacle`."""
    paths = entries(place)
    weights = [path for path in paths if path.suffix == ".safetensors" and path.is_file()]
    config = place / "config.json"
    if weights and config in paths:
        size = sum(path.stat().st_size for path in weights)
        model = name or place.absolute().name.lower()
        yield StoredModel(model, config_precision(read_object(config)), place, size, "safetensors", source)


def config_precision(config: Mapping[str, Any]) -> str:
    """How the weights of a safetensors model are stored, by its config.json; empty where it does not say."""
    quantization = config.get("quantization_config")
    if isinstance(quantization, dict) and isinstance(quantization.get("bits"), int):
        return f"int{quantization['bits']}"
    if isinstance(quantization, dict) and quantization.get("quant_method") == "mxfp4":
        return "mxfp4"
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "")
    return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(dtype.removeprefix("torch."), "")


def folders_below(root: Path, depth: int) -> Iterator[Path]:
    """`root` and the folders below it, `depth` levels deep; links to folders are not followed."""
    if root.is_dir():
        yield root
        for entry in entries(root) if depth else ():
            if not entry.is_symlink() and not re.match(r"[._]", entry.name):
                yield from folders_below(entry, depth - 1)


def entries(place: Path) -> list[Path]:
    """What is in a folder, sorted; empty when it cannot be read."""
    try:
        return sorted(place.iterdir())
    except OSError:
        return []
