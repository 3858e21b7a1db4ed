"""Models on disk: the built-in model, localrun's models folder, the Hugging Face cache, other programs' models."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localrun.base.errors import UsageError
from localrun.base.paths import folder, writable_folder
from localrun.base.resources import resource
from localrun.base.settings import read_settings
from localrun.base.small_file import read_small
from localrun.base.state_file import change_state, read_state
from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun.hub.disk.hf_cache import MAX_REF_BYTES
from localrun.hub.disk.model_files import entries
from localrun.hub.disk.other_programs import lm_studio_models, ollama_models
from localrun.hub.disk.stored import StoredModel, folders_below, ggufs_in, ggufs_of_repo, safetensors_in, stored_at
from localrun.hub.downloads.journal import JournalHead
from localrun.hub.downloads.partial import find_partials
from localrun.hub.network.access import hub_cache

_USED_FILE = "last-used.json"
_LATEST = 1 << 35  # seconds; the year 3058
_MAX_DEPTH = 4  # below the models folder: org/repo/variant/file


def scan() -> list[StoredModel]:
    """Every model on disk, by name and then by size."""
    return [model for model in scan_files() if not model.helper]


def scan_files() -> list[StoredModel]:
    """Every model on disk, with helper files such as projectors and draft models."""
    found = [*builtin_models(), *_models_folder(), *_hub_cache(), *lm_studio_models(), *ollama_models()]
    found += _other_folders(found)
    used = _read_used()
    found += _elsewhere(used, found)
    found = [replace(model, last_used=used.get(str(model.path))) for model in found]
    return sorted(found, key=lambda model: (model.name.lower(), model.bytes))


def _elsewhere(used: Iterable[str], found: Iterable[StoredModel]) -> Iterator[StoredModel]:
    """Models outside the known folders that were used by their path and still exist."""
    known = {os.path.realpath(model.path) for model in found}
    for path in map(Path, used):
        if path.is_absolute() and path.exists() and os.path.realpath(path) not in known:
            yield from (model for model in stored_at(path) if model.path == path)


def builtin_models() -> list[StoredModel]:
    """The model in the wheel, in each precision that ships; empty in a checkout that has not built it."""
    models = []
    for precision, file in read_catalogue()[BUILTIN]["files"].items():
        with suppress(FileNotFoundError):
            path = resource(file)
            models.append(StoredModel(BUILTIN, precision, path, path.stat().st_size, "gguf", "builtin"))
    return models


def unfinished() -> Iterator[tuple[Path, JournalHead, int]]:
    """Unfinished downloads: (journal, its head, bytes on disk)."""
    for repo in entries(hub_cache()):
        yield from find_partials(repo / "blobs")


def mark_used(path: Path) -> None:
    """Store that the model at `path` was used now; no effect where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return
    name, now = str(path.absolute()), round(time.time(), 3)
    change_state(home / _USED_FILE, lambda used: {**_times(used), name: now})


def _read_used() -> dict[str, float]:
    home = folder("cache")
    return _times(read_state(home / _USED_FILE)) if home else {}


def _times(used: Mapping[str, object]) -> dict[str, float]:
    """Times of use by path, without times outside the calendar."""
    times = ((path, seconds) for path, seconds in used.items() if isinstance(seconds, int | float))
    return {path: float(seconds) for path, seconds in times if 0 <= seconds < _LATEST}


def _models_folder() -> Iterator[StoredModel]:
    root = folder("models")
    for place in folders_below(root, _MAX_DEPTH) if root else ():
        yield from safetensors_in(place, "models", place.name.lower() if place != root else "")
        yield from ggufs_in(place, "models")


def _other_folders(found: Iterable[StoredModel]) -> Iterator[StoredModel]:
    """Models in the folders of the setting that are not among those found already."""
    known = {os.path.realpath(model.path) for model in found}
    roots: list[Path] = []
    with suppress(UsageError):  # a load says what is wrong with the settings; a list needs none
        roots = read_settings().model_folders
    for root in roots:
        for place in folders_below(root, _MAX_DEPTH):
            for model in (*safetensors_in(place, "path", place.name.lower()), *ggufs_in(place, "path")):
                if (path := os.path.realpath(model.path)) not in known:
                    known.add(path)
                    yield model


def _hub_cache() -> Iterator[StoredModel]:
    """Models in the Hugging Face cache; where revisions share a file, the revision of `main`.

    A renamed file appears under each of its names.
    """
    for repo in entries(hub_cache()):
        parts = repo.name.split("--", 2)
        if parts[0] != "models" or len(parts) != 3:
            continue
        name = "/".join(parts[1:])
        seen: set[tuple[str, str]] = set()
        for snapshot in _snapshots(repo):
            places = list(folders_below(snapshot, 2))
            whole = list(safetensors_in(snapshot, "hub", name))
            models = [*ggufs_of_repo(places, "hub", name, bool(whole)), *whole]
            for model in models:
                key = (model.precision, str(model.path.relative_to(snapshot)))
                if key not in seen:
                    seen.add(key)
                    yield model


def _snapshots(repo: Path) -> list[Path]:
    try:
        main = read_small(repo / "refs" / "main", MAX_REF_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    return sorted(entries(repo / "snapshots"), key=lambda path: (path.name != main, path.name))
