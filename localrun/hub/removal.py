"""Removing models: what would go and what it would free, told first; then exactly that."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localrun.base.errors import HubError, NotFoundError, UsageError
from localrun.base.paths import folder
from localrun.base.settings import FILE_NAME, read_sources, write_setting
from localrun.hub.access import hub_cache
from localrun.hub.hf_cache import repo_folder
from localrun.hub.partial import find_partials, is_alive, remove_orphans, remove_partial
from localrun.hub.resolve import resolve_all
from localrun.hub.stored import StoredModel, shards_of

_OWNERS = {
    "builtin": ("the built-in model is part of localrun", "it goes with `pip uninstall localrun`"),
    "lmstudio": ("this model belongs to LM Studio", "remove it there"),
    "ollama": ("this model belongs to Ollama", "remove it with `ollama rm`"),
    "path": ("this is a file of yours, outside localrun's folders", "remove it yourself"),
}


@dataclass(frozen=True)
class Removal:
    """`files` go, and `freed` bytes with them; `execute` does it. Files shared with others are not counted."""

    files: tuple[Path, ...]
    freed: int
    _cache_strategy: Any = None
    _blobs: Path | None = None
    _partials: tuple[Path, ...] = ()
    _root: Path | None = None

    def execute(self) -> None:
        """Remove what was told. HubError when the system does not let us."""
        try:
            for journal in self._partials:
                remove_partial(journal)
            if self._cache_strategy is not None:
                self._cache_strategy.execute()
                if self._blobs is not None:
                    remove_orphans(self._blobs)
            elif self._root is not None:
                for path in self.files:
                    _unlink_inside(path, self._root)
        except OSError as error:
            what = error.strerror or type(error).__name__
            raise HubError(
                f"cannot remove {error.filename}: {what}", "check who owns it, and whether it is in use"
            ) from None


def plan_removal(models: Sequence[StoredModel]) -> Removal:
    """What removing these precisions of one model means. UsageError for a model that is not ours to remove."""
    source = models[0].source
    if source in _OWNERS:
        what, hint = _OWNERS[source]
        raise UsageError(f"{models[0].name} stays: {what}", hint)
    if source == "hub":
        return _from_cache(models)
    root = folder("models")
    files = tuple(path for model in models for path in _files_of(model))
    return Removal(files, sum(path.lstat().st_size for path in files), _root=root)


def remove(removal: Removal, models: Sequence[StoredModel]) -> bool:
    """Do it. Where that was the last of the default model, the setting goes too: gives whether it did."""
    value, source = read_sources().get("model", ("", ""))
    default = str(value) if source == FILE_NAME else ""
    was_default = not {model.path for model in models}.isdisjoint(_paths_of(default))
    removal.execute()
    if not was_default or _paths_of(default):
        return False
    write_setting("model", None)
    return True


def plan_partials(repo: str) -> Removal:
    """Unfinished downloads of a repository that nobody works on."""
    blobs = repo_folder(hub_cache(), repo) / "blobs"
    found = [(journal, there) for journal, head, there in find_partials(blobs) if not is_alive(journal, head)]
    journals = tuple(journal for journal, _ in found)
    return Removal(journals, sum(there for _, there in found), _partials=journals)


def _from_cache(models: Sequence[StoredModel]) -> Removal:
    """By the rules of the cache itself: a blob that another revision or repository needs stays."""
    from huggingface_hub import scan_cache_dir

    repo_id, cache = models[0].name, hub_cache()
    info = scan_cache_dir(cache)
    repo = next((repo for repo in info.repos if repo.repo_id == repo_id and repo.repo_type == "model"), None)
    if repo is None:
        raise HubError(f"the Hugging Face cache of {repo_id} is damaged", f"look into {repo_folder(cache, repo_id)}")
    wanted = {path.name for model in models for path in _files_of(model)}
    files = [file for revision in repo.revisions for file in revision.files]
    weights = {file.file_name for file in files if file.file_name.endswith((".gguf", ".safetensors"))}
    gone = [file for file in files if file.file_name in wanted or weights <= wanted]
    strategy = info.delete_files(*gone)
    partials = plan_partials(repo_id) if weights <= wanted else Removal((), 0)
    return Removal(
        tuple(file.file_path for file in gone) + partials.files,
        int(strategy.expected_freed_size) + partials.freed,
        _cache_strategy=strategy,
        _blobs=repo_folder(cache, repo_id) / "blobs",
        _partials=partials.files,
    )


def _paths_of(name: str) -> list[Path]:
    """Where the models of this name are on disk."""
    try:
        return [model.path for model in resolve_all(name)] if name else []
    except NotFoundError:
        return []


def _files_of(model: StoredModel) -> list[Path]:
    if model.format == "gguf":
        return shards_of(model.path) or [model.path]
    return sorted(path for path in model.path.iterdir() if path.is_file() and path.suffix != ".gguf")


def _unlink_inside(path: Path, root: Path) -> None:
    """Remove one file of our own folder, and its folder when that is empty; never anything behind a link."""
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise HubError(f"{path} is not inside {root}", "remove it yourself")
    path.unlink(missing_ok=True)
    if path.parent != root and not any(path.parent.iterdir()):
        path.parent.rmdir()
