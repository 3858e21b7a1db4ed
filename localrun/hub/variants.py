"""The precisions of a repository: which files belong to each, whole GGUFs, split ones, or a safetensors folder."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Literal

from localrun.base.errors import NotFoundError
from localrun.formats.requantize import PRECISIONS
from localrun.hub.model_files import SAFETENSORS_INDEX, is_beside_weights
from localrun.hub.names import parse_file_name, same_precision, words_of
from localrun.hub.remote_repo import RemoteFile, RemoteRepo

_NOT_A_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)
_HELPER = re.compile(r"(?:^|[-_.])(?:draft|mtp|eagle3?|dflash|lora|adapter)(?:$|[-_.])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Variant:
    """One precision. `files` are all that it needs, the one that opens it first; precision "" is not known yet."""

    precision: str
    format: Literal["gguf", "safetensors"]
    files: tuple[RemoteFile, ...]

    @property
    def bytes(self) -> int:
        """What there is to download."""
        return sum(file.size for file in self.files)

    @property
    def weights(self) -> tuple[RemoteFile, ...]:
        return tuple(file for file in self.files if file.path.endswith((".gguf", ".safetensors")))

    @property
    def names(self) -> set[str]:
        """What a person may call a file of it: its path, or its name alone."""
        return {name for file in self.weights for name in (file.path, PurePosixPath(file.path).name)}

    @property
    def weights_bytes(self) -> int:
        return sum(file.size for file in self.weights)


def variants_of(repo: RemoteRepo, wanted: str = "") -> list[Variant]:
    """All precisions of the model in a repository, the smallest first; split models that lack a part are left out.

    Of several models it is the one that the file `wanted` is of, else the one that the repository is named after, else
    the one with the most precisions, else the largest.
    """
    models = _models(repo)
    named = {model: variants for model, variants in models.items() if any(wanted in each.names for each in variants)}
    main = max(named or models, key=lambda model: _is_main(repo.name, model, models[model]), default="")
    return sorted([*models.get(main, ()), *_safetensors(repo)], key=lambda variant: variant.bytes)


def other_models(repo: RemoteRepo, variants: Sequence[Variant]) -> list[str]:
    """One file of every other model in a repository, such as the small one that drafts for the large one."""
    there = {file for variant in variants for file in variant.files}
    others = (min(each, key=lambda variant: variant.bytes) for each in _models(repo).values())
    return sorted(other.files[0].path for other in others if other.files[0] not in there)


def _models(repo: RemoteRepo) -> dict[str, list[Variant]]:
    """The precisions of every model that is there as GGUF, by the name that their files share."""
    ggufs: dict[tuple[str, str, str, int], list[RemoteFile]] = defaultdict(list)
    for file in repo.files:
        path = PurePosixPath(file.path)
        if path.suffix == ".gguf" and not _NOT_A_MODEL.search(path.name):
            parts = parse_file_name(path.name)
            precision = parts.precision or parse_file_name(f"x-{path.parent.name}.gguf").precision
            ggufs[parts.model, str(path.parent), precision or path.stem, parts.n_shards].append(file)
    models: dict[str, list[Variant]] = defaultdict(list)
    for (model, _, precision, n_shards), files in ggufs.items():
        if len(files) == n_shards:
            models[model].append(Variant(precision, "gguf", tuple(sorted(files, key=lambda file: file.path))))
    return models


def _is_main(repo: str, model: str, variants: Sequence[Variant]) -> tuple[bool, int, int, int]:
    """The larger, the more likely a repository is about this model."""
    words, of_repo = set(words_of(model)), set(words_of(repo))
    is_helper = bool(_HELPER.search(model)) and not _HELPER.search(repo)
    return not is_helper, -len(words ^ of_repo), len(variants), max(variant.bytes for variant in variants)


def choose_variant(repo: str, variants: Sequence[Variant], wanted: str) -> Variant:
    """The precision or file that was asked for. NotFoundError says which ones the repository has."""
    if not variants:
        raise NotFoundError(f"{repo} holds no model that localrun reads", "a .gguf, or .safetensors, is needed")
    for variant in variants:
        if same_precision(variant.precision, wanted) or wanted in variant.names:
            return variant
        if wanted.lower() in PRECISIONS and variant.format == "safetensors":  # quantised while it is loaded
            return variant
    there = list(dict.fromkeys(variant.precision or "safetensors" for variant in variants))
    near = get_close_matches(wanted.upper(), there, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? There is {', '.join(there)}" if near else f"there is {', '.join(there)}"
    raise NotFoundError(f"{repo} has no {wanted}", hint)


def _safetensors(repo: RemoteRepo) -> list[Variant]:
    """The model in the root of the repository, if there is one."""
    root = {file.path: file for file in repo.files if "/" not in file.path}
    weights = [file for name, file in sorted(root.items()) if name.endswith(".safetensors")]
    if SAFETENSORS_INDEX in root:  # some repositories hold the same weights twice
        weights = [file for file in weights if file.path.startswith("model")] or weights
    if not weights or "config.json" not in root:
        return []
    beside = [file for name, file in sorted(root.items()) if is_beside_weights(name)]
    return [Variant("", "safetensors", (*weights, *beside))]
