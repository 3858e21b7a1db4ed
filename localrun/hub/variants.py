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
from localrun.hub.api import RemoteFile, RemoteRepo
from localrun.hub.model_files import SAFETENSORS_INDEX, is_beside_weights
from localrun.hub.names import parse_file_name, same_precision

_NOT_A_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)


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
    def weights_bytes(self) -> int:
        return sum(file.size for file in self.weights)


def variants_of(repo: RemoteRepo) -> list[Variant]:
    """All precisions of a repository, the smallest first; split models that lack a part are left out."""
    ggufs: dict[tuple[str, str, str, int], list[RemoteFile]] = defaultdict(list)
    for file in repo.files:
        path = PurePosixPath(file.path)
        if path.suffix == ".gguf" and not _NOT_A_MODEL.search(path.name):
            parts = parse_file_name(path.name)
            precision = parts.precision or parse_file_name(f"x-{path.parent.name}.gguf").precision
            ggufs[str(path.parent), parts.model, precision or path.stem, parts.n_shards].append(file)
    found = [
        Variant(precision, "gguf", tuple(sorted(files, key=lambda file: file.path)))
        for (_, _, precision, n_shards), files in ggufs.items()
        if len(files) == n_shards
    ]
    return sorted([*found, *_safetensors(repo)], key=lambda variant: variant.bytes)


def choose_variant(repo: str, variants: Sequence[Variant], wanted: str) -> Variant:
    """The precision or file that was asked for. NotFoundError says which ones the repository has."""
    if not variants:
        raise NotFoundError(f"{repo} holds no model that localrun reads", "a .gguf, or .safetensors, is needed")
    for variant in variants:
        names = {name for file in variant.weights for name in (file.path, PurePosixPath(file.path).name)}
        if same_precision(variant.precision, wanted) or wanted in names:
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
