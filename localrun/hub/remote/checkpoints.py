"""The checkpoint behind a model: the safetensors of the original, which other engines load."""

from localrun.base.errors import HubError, NotFoundError
from localrun.fit.handover import Checkpoint
from localrun.hub.candidates import estimated
from localrun.hub.catalogue import CatalogueModel, read_catalogue
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview, Wanted, must_find_on_hub, preview

_AS_THEY_ARE = ("MXFP4",)  # precisions of GGUFs whose original has the same weights


def find_checkpoint(http: Http, model: str) -> Checkpoint:
    """The checkpoint of a model by any of its names, with the bytes that the hub shows; without a network those that
    follow from the catalogue's shape. Raises LocalrunError."""
    wanted = must_find_on_hub(model)
    entry = wanted.entry or _entry_of(wanted.repo)
    repo = entry.get("safetensors", "") if entry else wanted.repo
    if not repo:
        raise NotFoundError(f"no safetensors of {wanted.name} are known", "name their repository: org/repo")
    try:
        if not http.access.offline:
            return _on_hub(preview(http, Wanted(wanted.name, repo)), repo)
    except HubError:  # no network, or a model that asks for consent first
        if entry is None:
            raise
    return _in_catalogue(entry, wanted.name, repo)


def _entry_of(repo: str) -> CatalogueModel | None:
    """The catalogue's entry with this repository, be it that of GGUFs or of the original."""
    known = read_catalogue().values()
    return next((entry for entry in known if repo.lower() in _repos(entry)), None)


def _repos(entry: CatalogueModel) -> tuple[str, str]:
    return entry.get("gguf", "").lower(), entry.get("safetensors", "").lower()


def _on_hub(found: RepoPreview, repo: str) -> Checkpoint:
    sizes = [variant.weights_bytes for variant in found.variants if variant.format == "safetensors"]
    if found.shape is None or not sizes:
        what = found.note or "there are no safetensors in it"
        raise NotFoundError(f"{repo} tells no sizes: {what}", "name the repository of the original: org/repo")
    return Checkpoint(repo, found.shape, max(sizes))


def _in_catalogue(entry: CatalogueModel | None, name: str, repo: str) -> Checkpoint:
    shape = catalogue_shape(entry) if entry else None
    if entry is None or shape is None:
        hint = "without a network only models of the catalogue are known: see `localrun search`"
        raise HubError(f"localrun is offline, and {name} is not in the catalogue", hint)
    precision = next((one for one in entry.get("precisions", []) if one in _AS_THEY_ARE), "BF16")
    return Checkpoint(repo, shape, estimated(precision, shape).file_bytes, approximate=True)
