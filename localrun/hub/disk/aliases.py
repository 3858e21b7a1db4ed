"""Aliases: one model under several names, as several revisions in the Hugging Face cache may share its files.

Lists show such a model once. Removing it removes every name, since the bytes stay while one name leads to them.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path

from localrun.hub.disk.model_files import files_of_folder
from localrun.hub.disk.stored import StoredModel, shards_of


def without_aliases(models: Iterable[StoredModel]) -> list[StoredModel]:
    """The models in their order, one per set of files, with the latest date of use of all its names."""
    by_files: dict[Hashable, list[StoredModel]] = defaultdict(list)
    for model in models:
        by_files[_identity(model)].append(model)
    return [replace(same[0], last_used=_last_used(same)) for same in by_files.values()]


def with_aliases(model: StoredModel, models: Iterable[StoredModel]) -> list[StoredModel]:
    """`model`, and the other names for its files among `models`."""
    mine = _identity(model)
    return [model, *(other for other in models if other.path != model.path and _identity(other) == mine)]


def _last_used(models: Iterable[StoredModel]) -> float | None:
    return max((model.last_used for model in models if model.last_used is not None), default=None)


def _identity(model: StoredModel) -> Hashable:
    """Source and name of a model, and the files of its weights, found behind every link."""
    try:
        files = frozenset((stat.st_dev, stat.st_ino) for stat in map(Path.stat, _weights(model)))
    except OSError:  # gone since it was listed
        return model.path
    return model.source, (model.repo or model.name).lower(), model.format, files


def _weights(model: StoredModel) -> list[Path]:
    if model.format == "gguf":
        return shards_of(model.path) or [model.path]
    return [path for path in files_of_folder(model.path) if path.suffix == ".safetensors"]
