"""The precisions of a repository and their files: whole GGUFs, split ones, or a safetensors folder."""

from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError
from localrun.formats.gguf_names import is_gguf, is_weights, whole_name
from localrun.formats.helper_files import helper_beside_model, named_helper
from localrun.formats.requantize import PRECISIONS
from localrun.formats.safetensors_shards import weights_of
from localrun.hub.disk.model_files import is_beside_weights
from localrun.hub.names import main_model, of_precision, parse_file_name
from localrun.hub.remote.repo import RemoteFile, RemoteRepo


@dataclass(frozen=True, slots=True)
class Variant:
    """One precision. `files` are all that it needs, the one to open first; precision "" means not known yet."""

    precision: str
    format: Literal["gguf", "safetensors"]
    files: tuple[RemoteFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.files)

    @property
    def weights(self) -> tuple[RemoteFile, ...]:
        return tuple(file for file in self.files if is_weights(file.path))

    @property
    def names(self) -> set[str]:
        """Names that a person may type for a file: its path, or its name alone."""
        return {name for file in self.weights for name in (file.path, PurePosixPath(file.path).name)}

    @property
    def weights_bytes(self) -> int:
        return sum(file.size for file in self.weights)


def variants_of(repo: RemoteRepo, wanted: str = "") -> list[Variant]:
    """All precisions of the model in a repository, the smallest first; incomplete split models are left out.

    Of several models the one that has the file `wanted`, else the one that the repository is named after, else the one
    with the most precisions, else the largest.
    """
    models = _models(repo)
    named = {model: variants for model, variants in models.items() if any(wanted in each.names for each in variants)}
    sizes = {model: [variant.bytes for variant in variants] for model, variants in (named or models).items()}
    main, whole = main_model(repo.name, sizes), _safetensors(repo)
    is_helper = bool(whole) and not named and bool(helper_beside_model(main, repo.name))
    return sorted([*(() if is_helper else models.get(main, ())), *whole], key=lambda variant: variant.bytes)


def other_models(repo: RemoteRepo, variants: Sequence[Variant]) -> list[str]:
    """One file of every other model in a repository, such as a draft model."""
    there = {file for variant in variants for file in variant.files}
    others = (min(each, key=lambda variant: variant.bytes) for each in _models(repo).values())
    return sorted(other.files[0].path for other in others if other.files[0] not in there)


def _models(repo: RemoteRepo) -> dict[str, list[Variant]]:
    """Precisions of every GGUF model in the repository, by the name that its files share."""
    wholes: dict[str, list[RemoteFile]] = defaultdict(list)
    for file in sorted(repo.files, key=lambda file: file.path):
        if is_gguf(file.path) and not named_helper(file.path):
            wholes[whole_name(file.path)].append(file)
    found = [(parse_file_name(files[0].path), files) for files in wholes.values()]
    plain = {(name.model, name.precision) for name, _ in found if not name.remark}
    models: dict[str, list[Variant]] = defaultdict(list)
    for name, files in found:
        if len(files) == name.n_shards:
            precision = name.precision or PurePosixPath(files[0].path).stem
            is_second = name.remark and (name.model, name.precision) in plain
            label = name.label if is_second else precision
            folder = str(PurePosixPath(files[0].path).parent)  # as MTP/m-Q8_0.gguf beside m-Q8_0.gguf
            model = f"{folder}/{name.model}" if helper_beside_model(folder, repo.name) else name.model
            models[model].append(Variant(label, "gguf", tuple(files)))
    return models


def choose_variant(repo: str, variants: Sequence[Variant], wanted: str) -> Variant:
    """Choose the wanted precision or file. NotFoundError names those of the repository."""
    if is_gguf(wanted) and (helper := named_helper(wanted)):
        raise NotFoundError(f"{wanted} of {repo} is {helper}, not a model of its own", f"`localrun pull {repo}`")
    if not variants:
        raise NotFoundError(f"{repo} holds no model that localrun reads", "a .gguf, or .safetensors, is needed")
    at_path = [variant for variant in variants if any(file.path == wanted for file in variant.weights)]
    named = [variant for variant in variants if wanted in variant.names]
    for variant in at_path or named or of_precision(variants, wanted, lambda variant: variant.precision):
        return variant
    for variant in variants:
        if wanted.lower() in PRECISIONS and variant.format == "safetensors":  # quantised while it is loaded
            return variant
    there = list(dict.fromkeys(variant.precision or "safetensors" for variant in variants))
    near = get_close_matches(wanted.upper(), there, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? There is {', '.join(there)}" if near else f"there is {', '.join(there)}"
    raise NotFoundError(f"{repo} has no {wanted}", hint)


def _safetensors(repo: RemoteRepo) -> list[Variant]:
    """The safetensors model in the root of the repository, if there is one."""
    root = {file.path: file for file in repo.files if "/" not in file.path}
    weights = [root[name] for name in weights_of(root)]  # some repositories hold the same weights twice
    if not weights or "config.json" not in root:
        return []
    beside = sorted((file for file in repo.files if is_beside_weights(file.path)), key=lambda file: file.path)
    return [Variant("", "safetensors", (*weights, *beside))]
