"""Resolve MODEL, as people type it, to one model on disk. Never downloads."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from localrun.base.errors import NotFoundError, UsageError
from localrun.base.small_file import kind_of
from localrun.formats.gguf_names import is_gguf
from localrun.formats.requantize import PRECISIONS
from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun.hub.disk.aliases import with_aliases
from localrun.hub.disk.library import builtin_models, scan_files
from localrun.hub.disk.stored import StoredModel, stored_at
from localrun.hub.downloads.unsynced import require_whole
from localrun.hub.names import RECOMMENDED, of_precision, parse_file_name, parse_hub_name
from localrun.hub.one_model import one_model
from localrun.hub.suggest import near_names, same_names

_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model")


def resolve(model: str, precision: str = "auto") -> StoredModel:
    """Find `model`: an existing path, a name on disk, `builtin`, or `org/repo[:file or precision]`.

    `NAME:PRECISION` is split only where the whole names nothing; `precision` does the same for any MODEL. Without a
    precision the last used one is chosen, else the default one. NotFoundError names the models on disk, or the files
    that a power cut damaged; UsageError the models of a folder that holds several.
    """
    name, wanted, found = _find(model, precision)
    chosen = _choose(found, name, wanted)
    require_whole(chosen)
    return chosen


def resolve_listed(model: str) -> StoredModel:
    """Like resolve, for a name from the network: only models that `localrun list` shows, never a path."""
    if _is_path_like(model):
        raise NotFoundError(
            f"there is no model called {model[:80]}", "`localrun list` shows the models on this machine"
        )
    name, wanted, found = _find(model, "auto", paths=False)
    chosen = _choose(found, name, wanted)
    require_whole(chosen)
    return chosen


def resolve_all(model: str, precision: str = "auto") -> list[StoredModel]:
    """Every precision on disk that `model` means. Raises like resolve.

    A name means all its precisions; `NAME:PRECISION` means one, under every name of its files.
    """
    name, wanted, found = _find(model, precision)
    chosen = [_choose(found, name, wanted)] if wanted else _meant(found, name)
    same = (one for each in chosen for one in with_aliases(each, found))
    return list({one.path: one for one in same}.values())


def known_models(name: str) -> list[StoredModel]:
    """Like resolve_all; nothing where no model has that name, or a folder of it holds several."""
    try:
        return resolve_all(name)
    except (NotFoundError, UsageError):
        return []


def _find(model: str, precision: str, paths: bool = True) -> tuple[str, str, list[StoredModel]]:
    """The first reading of `model` that names something: the name, the wanted precision, and the models found."""
    asked = "" if precision.lower() == "auto" else precision
    stored: list[StoredModel] | None = None
    for name, wanted in _spellings(model, asked):
        found = (paths and _at_path(name)) or (builtin_models() if name.lower() == BUILTIN else [])
        if not found and not _is_path_like(name):
            stored = scan_files() if stored is None else stored
            found = _named(name, stored)
        if found:
            return name, wanted, found
    models = [one for one in stored or () if not one.helper]
    for name, wanted in _spellings(model, asked):
        same = same_names(name, (one.name for one in models)) if not _is_path_like(name) else []
        if len(same) == 1:
            return name, wanted, [one for one in models if one.name == same[0]]
    raise _not_found(model, models)


def _spellings(model: str, wanted: str) -> Iterator[tuple[str, str]]:
    """The readings of `model` in turn: whole, split at its last colon, a repository of the hub.

    A name of the catalogue also means its repositories.
    """
    yield model, wanted
    yield from _repositories_of(model, wanted)
    name, colon, precision = model.rpartition(":")
    if colon and name:
        tag = wanted if precision.lower() == "latest" else precision  # Ollama's word for any
        yield name, tag
        yield from _repositories_of(name, tag)
    hub = parse_hub_name(model)
    if hub:
        yield hub.repo, hub.wanted or wanted


def _repositories_of(name: str, wanted: str) -> Iterator[tuple[str, str]]:
    entry = read_catalogue().get(name.lower())
    for key in ("gguf", "safetensors") if entry else ():
        repo = entry.get(key) if entry else None
        if repo:
            yield str(repo), wanted


def _at_path(text: str) -> list[StoredModel]:
    """Models at an existing path. A bare word is a path only where it is a .gguf or a folder with a model in it."""
    path = Path(os.path.expanduser(text))
    try:
        if path.is_dir():
            return stored_at(path) or _tokenizer_only(path)
        if not path.is_file():
            return []
    except (OSError, ValueError):  # a name that no file system takes
        return []
    if path.suffix == ".safetensors" or path.name in ("config.json", "model.safetensors.index.json"):
        of_folder = [model for model in stored_at(path.parent) if model.format == "safetensors"]
        return of_folder or stored_at(path)
    return stored_at(path) if is_gguf(path.name) or _is_path_like(text) else []


def _tokenizer_only(path: Path) -> list[StoredModel]:
    """A folder with a tokenizer and no weights, which can still tokenize."""
    if any((path / name).is_file() for name in _TOKENIZER_FILES):
        return [StoredModel(path.absolute().name, "", path, 0, "safetensors", "path")]
    return []


def _is_path_like(text: str) -> bool:
    """Whether `text` can only be a path: it starts like one, or has more parts than org/repo."""
    separators = text.count("/") + text.count(os.sep) * (os.sep != "/")
    is_hub = parse_hub_name(text) is not None
    on_windows = bool(_WINDOWS_PATH.match(text))
    return text.startswith((".", "~")) or os.path.isabs(text) or on_windows or (separators > 0 and not is_hub)


def _named(name: str, stored: list[StoredModel]) -> list[StoredModel]:
    """Files called `name` or in the repository `name`; else those with the same name without owner or folder."""
    wanted = name.lower()
    if not wanted:
        return []
    exact = [model for model in stored if wanted in (model.name.lower(), model.repo.lower())]
    return exact or [
        model for model in stored if wanted in (_last_part(model.name), _last_part(model.repo), model.path.name.lower())
    ]


def _meant(found: list[StoredModel], name: str) -> list[StoredModel]:
    """The precisions of the one model that a name means, of all files in its repository or folder.

    Raises UsageError where a folder of the user's holds several.
    """
    models = [one for one in found if not one.helper]
    if models and _is_folder(models):
        return one_model(models, name)
    return [one for one in found if one.is_main] or models or found


def _is_folder(found: list[StoredModel]) -> bool:
    """Whether they are in a folder of the user's, which may hold anything, and not in a repository."""
    return all(one.source == "path" for one in found)


def _last_part(name: str) -> str:
    return name.lower().rpartition("/")[2]


def _choose(found: list[StoredModel], name: str, wanted: str) -> StoredModel:
    """Choose one precision or file: the wanted, else the last used, else the default, else the smallest."""
    models = [one for one in found if not one.helper] if wanted and _is_folder(found) else _meant(found, name)
    models = sorted(models, key=lambda one: bool(parse_file_name(one.path).remark))  # plain ones first
    if wanted:
        matching = [one for one in found if one.path.name.lower() == wanted.lower()]
        matching = matching or of_precision(models, wanted, lambda one: one.precision)
        matching = matching or of_precision(models, wanted, lambda one: parse_file_name(one.path).label)
        if not matching and wanted.lower() in PRECISIONS:  # quantised while it is loaded
            matching = [replace(m, precision=wanted.lower()) for m in models if m.format == "safetensors"]
        if not matching:
            there = ", ".join(sorted({m.precision or m.path.name for m in models}))
            others = ", ".join(sorted(one.path.name for one in found if not one.helper and one not in models))
            more = f"; another model is beside it: {others}" if others else ""
            raise NotFoundError(f"{name} is not on disk as {wanted}", f"it is there as {there}{more}")
        models = _meant(matching, name)
    used = [model for model in models if model.last_used is not None]
    if used:
        return max(used, key=lambda model: model.last_used or 0.0)
    by_precision = {model.precision: model for model in reversed(models)}
    usual = next((by_precision[precision] for precision in RECOMMENDED if precision in by_precision), None)
    return usual or min(models, key=lambda model: model.bytes)


def _not_found(model: str, stored: list[StoredModel]) -> NotFoundError:
    near = near_names(model, stored)
    path = os.path.expanduser(model)
    if os.path.isdir(path):
        return NotFoundError(
            f"there is no model in the folder {model}", "a .gguf, or config.json and .safetensors, is needed"
        )
    if os.path.islink(path) and not os.path.exists(path):
        return NotFoundError(f"{model} is a broken link", "correct the link, or name the file itself")
    if os.path.isfile(path):
        here = path if os.path.isabs(path) else f"./{path}"
        ask = f"to ask a model about it, write @{model} in a chat; if it is a model: {here}"
        return NotFoundError(f"{model} is a file whose name does not end in .gguf", ask)
    if os.path.exists(path):
        return NotFoundError(
            f"{model} is {kind_of(os.stat(path).st_mode)}, not a file", "give the path of a model file"
        )
    if _WINDOWS_PATH.match(model) and os.name != "nt":
        return NotFoundError(
            f"{model} is a path of Windows", "paths on this system have / and no drive: /home/me/model.gguf"
        )
    if _is_path_like(model):
        return NotFoundError(f"there is no file or folder {model}", "check the path, or see `localrun list`")
    if near:
        named = {one.name for one in stored}
        download = "" if named & set(near) else f"`localrun pull {near[0]}` downloads it"
        meant = "" if near[0] == model.lower() else f"did you mean {' or '.join(near)}? "
        return NotFoundError(f"there is no model {model} on disk", f"{meant}{download}".strip())
    there = ", ".join(list(dict.fromkeys(one.name for one in stored))[:8])
    hint = f"on disk: {there}" if there else "nothing is on disk; a path to a .gguf works too"
    return NotFoundError(f"there is no model {model} on disk", hint)
