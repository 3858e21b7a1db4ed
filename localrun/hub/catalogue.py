"""The catalogue (models.toml): models with a short name, known without a network."""

import tomllib
from functools import cache
from typing import Any, NotRequired, TypedDict, cast

from localrun.base.resources import resource

BUILTIN = "builtin"
_FIRST_MODELS = ((15 << 30, "qwen3.5-9b"), (7 << 30, "qwen3.5-4b"), (0, "qwen3.5-2b"))  # from so much memory on


class CatalogueModel(TypedDict):
    """One table of models.toml."""

    title: str  # as shown to people
    licence: str  # SPDX identifier, or the hub's tag
    note: str  # one line: what it is good for
    files: NotRequired[dict[str, str]]  # precision -> file that ships with localrun; only of `builtin`
    gguf: NotRequired[str]  # repository with GGUF files
    safetensors: NotRequired[str]  # repository of the original
    precisions: NotRequired[list[str]]  # of the GGUF repository; there may be more
    thinking: NotRequired[bool]  # can think before it answers
    sees: NotRequired[bool]  # sees images, through a projector of the GGUF repository
    config: NotRequired[dict[str, Any]]  # what its config.json says of its shape


@cache
def read_catalogue() -> dict[str, CatalogueModel]:
    """Read every model of models.toml by its short name."""
    with resource("models.toml").open("rb") as file:
        return cast("dict[str, CatalogueModel]", tomllib.load(file)["models"])


def suggest(total_memory: int) -> str:
    """Suggest a first model for a machine with this many bytes of memory."""
    return suggestions(total_memory)[0]


def suggestions(total_memory: int) -> list[str]:
    """Suggest first models, the largest first."""
    return [name for least, name in _FIRST_MODELS if total_memory >= least]


def shown_name(name: str) -> str:
    """Display name of a model: its title in the catalogue, else its name without the owner."""
    return _titles().get(name.lower(), name.rpartition("/")[2] or name)


@cache
def _titles() -> dict[str, str]:
    """Titles by short name and by repository. The built-in model keeps its short name."""
    entries = {name: entry for name, entry in read_catalogue().items() if name != BUILTIN}
    titles = {name.lower(): entry["title"] for name, entry in entries.items()}
    for entry in entries.values():
        titles |= {repo.lower(): entry["title"] for key in ("gguf", "safetensors") if (repo := entry.get(key, ""))}  # type: ignore[attr-defined]
    return titles


def search_catalogue(term: str) -> dict[str, CatalogueModel]:
    """Models that can be downloaded and whose name, title, note or repository has every word of `term`."""
    words = term.lower().split()

    def text(name: str, model: CatalogueModel) -> str:
        return f"{name} {model['title']} {model['note']} {model['licence']} {model.get('gguf', '')}".lower()

    found = {name: model for name, model in read_catalogue().items() if name != BUILTIN}
    return {name: model for name, model in found.items() if all(word in text(name, model) for word in words)}
