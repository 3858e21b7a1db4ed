"""One model on disk, built from files and folders by names and sizes; contents are read only where needed."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.formats.gguf_names import is_gguf, part_names
from localrun.formats.helper_files import helper_at, helper_beside_model
from localrun.formats.json_files import read_object
from localrun.hub.disk.model_files import entries, weights_in
from localrun.hub.names import main_model, parse_file_name

MOST_REMEMBERED = 1000  # precisions of files
Source = Literal["builtin", "models", "hub", "lmstudio", "ollama", "path"]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One model in one precision. `bytes` counts all shards; `last_used` is seconds since 1970, None for never.

    `repo` is the name of the repository or folder around the model, where that name means one of the models in it: the
    one with `is_main`. `helper` says what a file is that is not a model of its own.
    """

    name: str
    precision: str
    path: Path  # the .gguf (first shard), or the safetensors folder
    bytes: int
    format: Literal["gguf", "safetensors"]
    source: Source
    last_used: float | None = None
    repo: str = ""
    is_main: bool = True
    helper: str = ""


def stored_at(path: Path, source: Source = "path", name: str = "") -> list[StoredModel]:
    """Models in a file or folder: one for a .gguf (any shard) or a safetensors folder, several for GGUFs."""
    if path.is_dir():
        whole = list(safetensors_in(path, source, name))
        ggufs = _sorted_out(ggufs_in(path, source), path.absolute().name, bool(whole))
        return [*whole, *(replace(model, name=name or model.name) for model in ggufs)]
    model = _gguf(path, shards_of(path) or [path], source)
    return [replace(model, name=name or model.name)]


def ggufs_of_repo(places: Iterable[Path], source: Source, repo: str, beside_weights: bool = False) -> list[StoredModel]:
    """GGUFs in the folders of one repository: the main model has its name, others add their own.

    `beside_weights`: the repository also holds a model as safetensors.
    """
    found = _sorted_out([model for place in places for model in ggufs_in(place, source)], repo, beside_weights)
    return [replace(model, name=repo if model.is_main else f"{repo}:{model.name}") for model in found]


def ggufs_in(place: Path, source: Source) -> Iterator[StoredModel]:
    """GGUFs in a folder, each named after its file."""
    for path in entries(place):
        if is_gguf(path.name) and path.is_file():
            shards = shards_of(path)
            if shards and shards[0] == path:
                yield _gguf(path, shards, source)


def _sorted_out(found: Iterable[StoredModel], repo: str, beside_weights: bool) -> list[StoredModel]:
    """Mark which of the GGUFs of one name is the main model, and which are helpers."""
    models = [replace(model, repo=repo) for model in found]
    beside = {
        model.path: helper_beside_model("/".join(model.path.parts[-2:]), repo) for model in models if not model.helper
    }
    if beside_weights or not all(beside.values()):  # there is a model for them to help
        models = [replace(model, helper=model.helper or beside[model.path]) for model in models]
    sizes: dict[str, list[int]] = defaultdict(list)
    for model in models:
        if not model.helper:
            sizes[parse_file_name(model.path).model].append(model.bytes)
    main = main_model(repo, sizes)
    return [replace(model, is_main=not model.helper and parse_file_name(model.path).model == main) for model in models]


def _gguf(path: Path, shards: list[Path], source: Source) -> StoredModel:
    parts = parse_file_name(path)
    size = sum(shard.stat().st_size for shard in shards)
    precision = parts.precision or _precision_inside(shards[0], shards[0].stat().st_mtime_ns, size)
    name = parts.model or path.stem.lower()
    return StoredModel(name, precision, shards[0], size, "gguf", source, helper=helper_at(shards[0]))


@lru_cache(MOST_REMEMBERED)
def _precision_inside(path: Path, mtime_ns: int, size: int) -> str:
    """The type of most bytes, for a file whose name has no precision; empty for an unreadable file. A file that has not
    changed since is not read again: a vocabulary takes a tenth of a second, and servers list models all the time."""
    from localrun.formats.gguf import open_gguf

    try:
        tensors = open_gguf(path, ahead=True).tensors.values()
    except LocalrunError:
        return ""
    sizes = Counter[str]()
    for tensor in tensors:
        sizes[tensor.qtype] += tensor.nbytes
    return sizes.most_common(1)[0][0] if sizes else ""


def shards_of(path: Path) -> list[Path]:
    """Every file of the split model that `path` belongs to, in order; empty when one is missing."""
    shards = [path.with_name(name) for name in part_names(path.name)]
    return shards if len(shards) == 1 or all(shard.is_file() for shard in shards) else []


def safetensors_in(place: Path, source: Source, name: str) -> Iterator[StoredModel]:
    """The model of weights beside a config.json; `stored_obstacle` says why one cannot be read."""
    weights, names = weights_in(place), {path.name for path in entries(place)}
    if weights and "config.json" in names:
        from localrun.formats.checkpoints.beside import with_declared  # a run from a GGUF starts without it

        size = sum(path.stat().st_size for path in weights)
        model = name or place.absolute().name.lower()
        config = with_declared(read_object(place / "config.json"), names, lambda file: read_object(place / file))
        yield StoredModel(model, config_precision(config), place, size, "safetensors", source)


def config_precision(config: Mapping[str, Any]) -> str:
    """How the weights of a safetensors model are stored, by its config.json; empty where it does not say."""
    from localrun.formats.checkpoints.registry import precision_label

    if label := precision_label(config):
        return label
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "")
    return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(dtype.removeprefix("torch."), "")


def folders_below(root: Path, depth: int) -> Iterator[Path]:
    """`root` and its subfolders, `depth` levels deep; links to folders are not followed."""
    if root.is_dir():
        yield root
        for entry in entries(root) if depth else ():
            if not entry.is_symlink() and not re.match(r"[._]", entry.name):
                yield from folders_below(entry, depth - 1)
