"""Removal of models: a plan that says what goes and what it frees, then its execution."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, UsageError
from localrun.base.file_use import users_of
from localrun.base.paths import folder
from localrun.base.settings import FILE_NAME, read_sources, write_setting
from localrun.formats.gguf_names import is_gguf, is_weights
from localrun.formats.helper_files import helper_at, helper_beside_model
from localrun.hub.disk.cached_repo import CachedRepo, freed_by, needed, unneeded
from localrun.hub.disk.hf_cache import repo_folder
from localrun.hub.disk.model_files import entries, files_of_folder, is_beside_weights
from localrun.hub.disk.safe_remove import refuse_links, remove_empty_folders, unlink_inside
from localrun.hub.disk.stored import StoredModel, shards_of
from localrun.hub.downloads.journal import part_of
from localrun.hub.downloads.partial import find_partials, is_abandoned, is_alive, orphans
from localrun.hub.network.access import hub_cache
from localrun.hub.resolve import known_models
from localrun.storage.weight_store import PackedModel, WeightStore, erase_packed, total_bytes

_OWNERS = {
    "builtin": ("the built-in model is part of localrun", "it goes with `pip uninstall localrun`"),
    "lmstudio": ("this model belongs to LM Studio", "remove it there"),
    "ollama": ("this model belongs to Ollama", "remove it with `ollama rm`"),
    "path": ("this is a file of yours, outside localrun's folders", "remove it yourself"),
}


@dataclass(frozen=True)
class Removal:
    """A planned removal of `files`, which frees `freed` bytes. Files shared with others are not counted.

    `left` names what stays although a person might expect it to go. `packed` are packed weights of the model, in the
    folder of caches. Nothing else outside of `_root` is touched. `users` names the processes that have it loaded.
    """

    files: tuple[Path, ...]
    freed: int
    left: tuple[str, ...]
    _root: Path
    _unnamed: tuple[Path, ...] = ()  # blobs that only these names led to, and what the cache notes about them
    _partials: tuple[Path, ...] = ()
    packed: tuple[PackedModel, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def in_use(self) -> str:
        """Who has it loaded, and what that means; empty where nobody has."""
        return f"{', '.join(self.users)}: answers go on there, but it cannot be loaded again" if self.users else ""

    def execute(self) -> None:
        """Remove the files of the plan. HubError when the system refuses, or when a link is in the way."""
        try:
            for journal in filter(is_abandoned, self._partials):
                unlink_inside(self._root, part_of(journal))
                unlink_inside(self._root, journal)
            for path in self.files:
                unlink_inside(self._root, path)
            for path in unneeded(self._unnamed, needed(self._root)) if self._unnamed else ():
                unlink_inside(self._root, path)
            for folder in {path.parent for path in self._unnamed}:
                for journal in orphans(folder):
                    unlink_inside(self._root, journal)
            for path in (*self.files, *self._unnamed):
                remove_empty_folders(self._root, path.parent)
            erase_packed(self.packed)
        except OSError as error:
            what = error.strerror or type(error).__name__
            raise HubError(
                f"cannot remove {error.filename}: {what}", "check who owns it, and whether it is in use"
            ) from None


def require_one(models: Sequence[StoredModel], name: str) -> None:
    """Raise UsageError where a name that is to be removed means more than one model."""
    if len(names := {(one.name, one.source) for one in models}) > 1:
        there = ", ".join(sorted(one for one, _ in names))
        raise UsageError(f"{name} means more than one model: {there}", "name the one to remove")


def plan_removal(models: Sequence[StoredModel]) -> Removal:
    """Plan the removal of these precisions of one model. UsageError for models of other programs."""
    source = models[0].source
    if source in _OWNERS:
        what, hint = _OWNERS[source]
        raise UsageError(f"{models[0].name} stays: {what}", hint)
    removal = _from_cache(models) if source == "hub" else _from_folder(models)
    home = folder("cache")
    packed = tuple(WeightStore(home).models_at([model.path for model in models])) if home else ()
    users = tuple(dict.fromkeys(user for model in models for user in users_of(model.path)))
    return replace(removal, freed=removal.freed + total_bytes(packed), packed=packed, users=users)


def remove(removal: Removal, models: Sequence[StoredModel]) -> bool:
    """Execute a removal. True where it removed the default model, whose setting goes too."""
    value, source = read_sources().get("model", ("", ""))
    default = str(value) if source == FILE_NAME else ""
    was_default = not {model.path for model in models}.isdisjoint(_paths_of(default))
    removal.execute()
    if not was_default or _paths_of(default):
        return False
    write_setting("model", None)
    return True


def plan_partials(repo: str) -> Removal:
    """Plan the removal of a repository's unfinished downloads on which no process works."""
    blobs = repo_folder(hub_cache(), repo) / "blobs"
    found = [(journal, there) for journal, head, there in find_partials(blobs) if not is_alive(journal, head)]
    journals = tuple(journal for journal, _ in found)
    for journal in journals:
        refuse_links(hub_cache(), journal)
    return Removal(journals, sum(there for _, there in found), (), hub_cache(), _partials=journals)


def discard(journal: Path) -> None:
    """Remove one unfinished download of the cache on which no process works."""
    Removal((journal,), 0, (), hub_cache(), _partials=(journal,)).execute()


def _from_folder(models: Sequence[StoredModel]) -> Removal:
    """Plan a removal from the models folder."""
    root = folder("models")
    assert root is not None
    files = [path for model in models for path in _files_of(model)]
    for path in files:
        refuse_links(root, path)
    folders = [model.path for model in models if model.format == "safetensors"]
    others = sorted({path for place in folders for path in entries(place)} - set(files))
    left = tuple(f"{path} stays: it is not a part of the model" for path in others)
    return Removal(tuple(files), freed_by(files), left, root)


def _from_cache(models: Sequence[StoredModel]) -> Removal:
    """Plan a removal from the cache.

    The last weights take the rest of the repository with them; a blob that another revision or repository needs stays.
    """
    cache = hub_cache()
    repo = CachedRepo(cache, models[0].repo or models[0].name)
    paths = [path for model in models for path in _files_of(model)]
    for path in paths:
        refuse_links(cache, path)
    wanted = set(map(repo.inside_snapshot, paths))
    weights = {path for path in repo.named if is_weights(path.name) and not _only_helps(path, repo.name)}
    is_all = {repo.inside_snapshot(path) for path in weights} <= wanted
    gone = [path for path in repo.named if _goes(path, is_all) or repo.inside_snapshot(path) in wanted]
    others = sorted(set(repo.named) - set(gone)) if is_all else []
    left = [f"{path} stays: it is not a part of the model" for path in others]
    left += [f"{os.path.realpath(path)} stays: {path} is only a link to it" for path in repo.foreign(gone)]
    blobs = unneeded(repo.blobs if is_all else repo.behind(gone), needed(cache, gone))
    partials = plan_partials(repo.name) if is_all else Removal((), 0, (), cache)
    return Removal(
        (*gone, *partials.files),
        freed_by([*gone, *blobs]) + partials.freed,
        tuple(left),
        cache,
        (*blobs, *(repo.bookkeeping() if is_all else ())),
        partials.files,
    )


def _only_helps(path: Path, repo: str) -> bool:
    """Whether a file is useless once the models of its repository are gone."""
    return is_gguf(path.name) and bool(helper_at(path) or helper_beside_model(path.name, repo))


def _goes(path: Path, is_all: bool) -> bool:
    """Whether a name in the cache goes with the last weights: every link, and files that are part of a model."""
    return is_all and (path.is_symlink() or is_weights(path.name) or is_beside_weights(path.name))


def _paths_of(name: str) -> list[Path]:
    """Paths of the models of this name on disk."""
    return [model.path for model in known_models(name)] if name else []


def _files_of(model: StoredModel) -> list[Path]:
    if model.format == "gguf":
        return shards_of(model.path) or [model.path]
    return files_of_folder(model.path)
