"""Preview of a model before its download: repository, precisions and their sizes, and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, LocalrunError, ModelFileError, NotFoundError
from localrun.base.sanitize import clean
from localrun.fit.estimate import Candidate
from localrun.fit.shape import ModelShape, shape_of
from localrun.fit.weights import type_of
from localrun.formats.requantize import PRECISIONS
from localrun.hub.alternatives import unsupported_message
from localrun.hub.candidates import FLOATS, by_tensors, estimated, is_wide, offered, quantised
from localrun.hub.catalogue import CatalogueModel, read_catalogue
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.hub.disk.hf_cache import missing_bytes
from localrun.hub.disk.stored import config_precision
from localrun.hub.header_model import without_rope_tensors
from localrun.hub.names import parse_hub_name, same_precision
from localrun.hub.network.http import Http, NetworkError
from localrun.hub.projectors import sight_of
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.headers import read_headers, read_remote
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.remote.variants import Variant, choose_variant, variants_of
from localrun.hub.suggest import catalogue_name, near_names

if TYPE_CHECKING:
    from localrun.engine.image_cost import ImageCost

_TRIES = 3  # files that are looked at for the shape of a model
_FULL_PRECISIONS = ("bf16", "fp16", "f16", "fp32", "f32", "int8", "int4", "int2")  # of the original, not of a GGUF


@dataclass(frozen=True, slots=True)
class Wanted:
    """A name that means a repository of the hub. `precision` may be a file; empty: any."""

    name: str
    repo: str
    precision: str = ""
    entry: CatalogueModel | None = None


@dataclass(frozen=True, slots=True)
class RepoPreview:
    """A model on the hub. Without a network `repo` is None, and sizes follow from the shape (`approximate`)."""

    wanted: Wanted
    repo: RemoteRepo | None
    variants: tuple[Variant, ...]
    candidates: tuple[Candidate, ...]
    shape: ModelShape | None
    licence: str
    note: str = ""  # why there is no shape
    unreachable: str = ""  # why the hub was not asked; empty where it was, or did not need to be
    unreadable: Mapping[str, str] = field(default_factory=dict)  # precisions of types we do not know: what they hold
    projector: RemoteFile | None = None  # with which GGUFs of it see
    images: ImageCost | None = None  # None: it sees none, or that is not known

    @property
    def approximate(self) -> bool:
        return self.repo is None

    @property
    def obstacle(self) -> str:
        """Why the model cannot be run in any precision, or in the wanted one, and the nearest one that can."""
        why = self.note or (self.shape.obstacle if self.shape else "") or self._unread
        return why and unsupported_message(why, self.wanted.name, self.shape.n_params if self.shape else 0)

    @property
    def _unread(self) -> str:
        asked = [one for one in self.candidates if same_precision(one.precision, self.wanted.precision)]
        why = [self.unreadable.get(one.precision, "") for one in asked or self.candidates]
        return why[0] if why and all(why) else ""


def find_on_hub(model: str, precision: str = "auto") -> Wanted | None:
    """Find `model` on the hub: a name of the catalogue, or `org/repo`; None when it can be neither."""
    asked = "" if precision.lower() == "auto" else precision
    for name, of_name in ((model, ""), *([tuple(model.rsplit(":", 1))] if ":" in model else [])):
        if known := catalogue_name(name):
            return _in_catalogue(known, asked or of_name, read_catalogue()[known])
    hub = parse_hub_name(model)
    return Wanted(hub.repo, hub.repo, hub.wanted or asked) if hub else None


def must_find_on_hub(model: str, precision: str = "auto") -> Wanted:
    """Like find_on_hub; NotFoundError with the nearest names instead of None."""
    wanted = find_on_hub(model, precision)
    if wanted is not None:
        return wanted
    near = near_names(model)
    hint = f"did you mean {' or '.join(near)}?" if near else "`localrun search TERM` finds models; org/repo names one"
    raise NotFoundError(f"there is no model {clean(model, keep_newlines=False)[:100]}", hint)


def preview_or_guess(http: Http, wanted: Wanted) -> RepoPreview:
    """Preview a model from the hub; from the catalogue where the hub cannot be reached."""
    try:
        return preview(http, wanted)
    except NetworkError as error:
        try:
            return replace(_from_catalogue(wanted), unreachable=error.message)
        except HubError:
            raise error from None


def preview(http: Http, wanted: Wanted) -> RepoPreview:
    """Preview a model from the hub; offline from the catalogue. Raises LocalrunError."""
    if http.access.offline:
        return _from_catalogue(wanted)
    repo = read_repo(http, wanted.repo)
    variants = variants_of(repo, wanted.precision)
    if not variants:
        choose_variant(repo.name, variants, wanted.precision)  # says why
    shape, note, variants = _read_shape(http, repo, variants, wanted.precision)
    unreadable = _unreadable(http, repo, variants)
    candidates = [_candidate(http, repo, variant, shape, unreadable) for variant in variants]
    originals = [one for variant, one in zip(variants, candidates, strict=True) if variant.format == "safetensors"]
    if shape is not None and any(map(is_wide, originals)):
        candidates += [quantised(precision, shape) for precision in PRECISIONS]  # while it is loaded
    seeing = None if shape is None or shape.obstacle else shape.config.hidden_size
    projector, images = sight_of(http, repo, variants, seeing) if seeing else (None, None)
    found = wanted, repo, tuple(variants), tuple(candidates), shape, repo.licence, note
    return RepoPreview(*found, unreadable=unreadable, projector=projector, images=images)


def _in_catalogue(name: str, precision: str, entry: CatalogueModel) -> Wanted:
    original = precision.lower() in _FULL_PRECISIONS and precision.upper() not in entry.get("precisions", [])
    gguf, safetensors = entry.get("gguf", ""), entry.get("safetensors", "")
    return Wanted(name, (safetensors if original else gguf) or gguf or safetensors, precision, entry)


def _from_catalogue(wanted: Wanted) -> RepoPreview:
    named = (e for e in read_catalogue().values() if wanted.repo in (e.get("gguf"), e.get("safetensors")))
    entry = wanted.entry or next(named, None)
    shape = catalogue_shape(entry) if entry else None
    if entry is None or shape is None:
        hint = "without a network only models of the catalogue are known: see `localrun search`"
        raise HubError(f"localrun is offline, and {wanted.name} is neither on disk nor in the catalogue", hint)
    candidates = tuple(estimated(precision, shape) for precision in entry.get("precisions", []))
    return RepoPreview(wanted, None, (), candidates, shape, entry["licence"])


def _read_shape(
    http: Http, repo: RemoteRepo, variants: list[Variant], wanted: str
) -> tuple[ModelShape | None, str, list[Variant]]:
    """Read the shape from the wanted precision, else from the smallest complete one; else return why there is none.

    Also returns the variants, with the precision of a safetensors model filled in.
    """
    asked = [variant for variant in variants if same_precision(variant.precision, wanted) or wanted in variant.names]
    failures: list[LocalrunError] = []
    for variant in dict.fromkeys((*asked, *variants[:_TRIES])):
        try:
            model = read_remote(http, repo, variant)
            if variant.format == "safetensors":
                named = replace(variant, precision=config_precision(model.metadata))
                variants = [named if each is variant else each for each in variants]
            return shape_of(without_rope_tensors(model)), "", variants
        except (ModelFileError, NotFoundError) as error:  # another file of the same model may be better
            failures.append(error)
    return None, failures[0].message, variants


def _unreadable(http: Http, repo: RemoteRepo, variants: Sequence[Variant]) -> dict[str, str]:
    """Precisions of unknown types whose headers show that they cannot be read, with the reasons."""
    odd = [one for one in variants if one.format == "gguf" and one.precision and type_of(one.precision) is None]
    found = {}
    for variant in odd[:_TRIES]:
        try:
            read_headers(http, repo, variant.files[:1])
        except ModelFileError as error:
            if error.code == "BAD_TENSOR_TYPE":
                found[variant.precision] = error.message.removeprefix(f"{error.path}: ")
    return found


def _candidate(
    http: Http, repo: RemoteRepo, variant: Variant, shape: ModelShape | None, unreadable: dict[str, str]
) -> Candidate:
    """Candidate for one precision on the hub; headers of a quantised checkpoint tell how its tensors would be held."""
    missing = missing_bytes(http.access.cache, repo, variant.files)
    if shape is None or variant.format != "safetensors" or variant.precision in ("", *FLOATS) or shape.obstacle:
        return offered(variant, shape, missing)
    try:
        source = read_headers(http, repo, variant.files)
    except ModelFileError as error:
        unreadable[variant.precision] = error.message.removeprefix(f"{error.path}: ")
        return offered(variant, shape, missing)
    return by_tensors(source, variant.precision, shape, variant.bytes, missing)
