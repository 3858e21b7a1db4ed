"""What is on disk: the built-in model, localrun's models folder and the Hugging Face cache. Names, not contents."""

import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from localrun.base.errors import LocalrunError
from localrun.base.paths import folder, writable_folder
from localrun.base.resources import resource
from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun.hub.names import parse_file_name

Source = Literal["builtin", "models", "hub", "path"]

_USED_FILE = "last-used.json"
_MAX_DEPTH = 4  # below the models folder: org/repo/variant/file


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


def scan() -> list[StoredModel]:
    """Everything on disk that can be named, by name and then by size."""
    found = [*builtin_models(), *_models_folder(), *_hub_cache()]
    used = _read_used()
    found = [replace(model, last_used=used.get(str(model.path))) for model in found]
    return sorted(found, key=lambda model: (model.name.lower(), model.bytes))


def builtin_models() -> list[StoredModel]:
    """The model in the wheel, in each precision that ships; empty in a checkout that has not built it."""
    models = []
    for precision, file in read_catalogue()[BUILTIN]["files"].items():
        with suppress(FileNotFoundError):
            path = resource(file)
            models.append(StoredModel(BUILTIN, precision, path, path.stat().st_size, "gguf", "builtin"))
    return models


def stored_at(path: Path, source: Source = "path", name: str = "") -> list[StoredModel]:
    """The models in a file or folder: one for a .gguf (any shard) or a safetensors folder, several for GGUFs."""
    if path.is_dir():
        return [*_safetensors_in(path, source, name), *_ggufs_in(path, source, name)]
    return [_gguf(path, _shards_of(path) or [path], source, name)]


def mark_used(path: Path) -> None:
    """Remember that the model at `path` was used now. Where nothing can be written, nothing is remembered."""
    home = writable_folder("cache")
    if home is None:
        return
    used = {**_read_used(), str(path): round(time.time(), 3)}
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=home, delete=False) as file:
            json.dump(used, file)
        os.replace(file.name, home / _USED_FILE)
    except OSError:
        return


def _read_used() -> dict[str, float]:
    home = folder("cache")
    try:
        used = json.loads((home / _USED_FILE).read_text("utf-8")) if home else {}
    except (OSError, ValueError):
        return {}
    times = used.items() if isinstance(used, dict) else ()
    return {path: float(seconds) for path, seconds in times if isinstance(seconds, int | float)}


def _models_folder() -> Iterator[StoredModel]:
    root = folder("models")
    for place in _folders_below(root, _MAX_DEPTH) if root else ():
        yield from _safetensors_in(place, "models", place.name.lower() if place != root else "")
        yield from _ggufs_in(place, "models")


def _hub_cache() -> Iterator[StoredModel]:
    """Snapshots of the Hugging Face cache; of several revisions of a file, the one `main` points to."""
    for repo in _entries(_hub_cache_folder()):
        parts = repo.name.split("--", 2)
        if parts[0] != "models" or len(parts) != 3:
            continue
        name = "/".join(parts[1:])
        seen: set[tuple[str, str]] = set()
        for snapshot in _snapshots(repo):
            places = list(_folders_below(snapshot, 2))
            models = [model for place in places for model in _ggufs_in(place, "hub", name)]
            models += _safetensors_in(snapshot, "hub", name)
            for model in models:
                key = (model.precision, model.path.name if model.format == "gguf" else "")
                if key not in seen:
                    seen.add(key)
                    yield model


def _hub_cache_folder() -> Path:
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.path.expanduser(home)) / "hub"


def _snapshots(repo: Path) -> list[Path]:
    try:
        main = (repo / "refs" / "main").read_text().strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    return sorted(_entries(repo / "snapshots"), key=lambda path: (path.name != main, path.name))


def _ggufs_in(place: Path, source: Source, name: str = "") -> Iterator[StoredModel]:
    for path in _entries(place):
        if path.suffix != ".gguf" or path.name.startswith("mmproj") or not path.is_file():
            continue
        shards = _shards_of(path)
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


def _shards_of(path: Path) -> list[Path]:
    """Every file of the split model that `path` belongs to, the first one first; empty when one is missing."""
    parts = parse_file_name(path.name)
    if parts.n_shards == 1:
        return [path]
    of = f"-of-{parts.n_shards:05d}.gguf"
    head = path.name[: -len(of) - 6]
    shards = [path.with_name(f"{head}-{number:05d}{of}") for number in range(1, parts.n_shards + 1)]
    return shards if all(shard.is_file() for shard in shards) else []


def _safetensors_in(place: Path, source: Source, name: str) -> Iterator[StoredModel]:
    weights = [path for path in _entries(place) if path.suffix == ".safetensors" and path.is_file()]
    config = _read_json(place / "config.json")
    if weights and config:
        size = sum(path.stat().st_size for path in weights)
        model = name or place.absolute().name.lower()
        yield StoredModel(model, _config_precision(config), place, size, "safetensors", source)


def _config_precision(config: dict[str, Any]) -> str:
    quantization = config.get("quantization_config")
    if isinstance(quantization, dict) and isinstance(quantization.get("bits"), int):
        return f"int{quantization['bits']}"
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "")
    return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(dtype.removeprefix("torch."), "")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _folders_below(root: Path, depth: int) -> Iterator[Path]:
    """`root` and the folders below it, `depth` levels deep; links to folders are not followed."""
    if root.is_dir():
        yield root
        for entry in _entries(root) if depth else ():
            if not entry.is_symlink() and not re.match(r"[._]", entry.name):
                yield from _folders_below(entry, depth - 1)


def _entries(place: Path) -> list[Path]:
    """What is in a folder, sorted; empty when it cannot be read."""
    try:
        return sorted(place.iterdir())
    except OSError:
        return []
