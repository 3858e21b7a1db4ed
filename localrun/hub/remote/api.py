"""Listings of the hub: models that match a search term, and the files of a repository. Nothing is written to disk."""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, NotFoundError
from localrun.base.sanitize import clean
from localrun.base.timer import calling_after
from localrun.formats.gguf_names import is_gguf
from localrun.formats.helper_files import PROJECTOR, named_helper
from localrun.hub.network.connection import MIRROR_HINT
from localrun.hub.network.http import LONGEST_WAIT, Http, NetworkError
from localrun.hub.network.http_errors import check_status
from localrun.hub.network.url_origin import host_of
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.safe_names import is_commit, is_etag, is_file, is_repo
from localrun.model.seeing import SEEING

RETRY_SECONDS = (0.5, 2.0)
SILENT_SECONDS = 4.0  # of waiting before the user is told why
MOST_SECONDS = 20.0  # after which nothing is asked again
MAX_FILES = 100_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundModel:
    """One row of a search. `n_params` and `max_context` are 0 where the hub does not say."""

    repo: str
    downloads: int
    likes: int
    gated: bool
    licence: str
    arch: str = ""
    n_params: int = 0
    max_context: int = 0
    sees: bool = False  # it has a projector (mmproj), beside a model of a kind whose images are read


def search(http: Http, term: str, limit: int = 20) -> list[FoundModel]:
    """Find models with GGUF files that match `term`, the most downloaded first.

    HubError when the hub cannot be asked.
    """
    expand = [("expand", name) for name in ("gguf", "downloads", "likes", "gated", "tags", "siblings")]
    query = [("search", term), ("filter", "gguf"), ("sort", "downloads"), ("limit", str(limit)), *expand]
    url = f"{http.access.endpoint}/api/models?{urlencode(query)}"
    rows = get_json(http, url)
    if not isinstance(rows, list):
        raise _not_a_hub(url)
    found = [_found(row) for row in rows[:limit] if isinstance(row, dict) and is_repo(str(row.get("id")))]
    return list({one.repo: one for one in found}.values())


def read_repo(http: Http, name: str, revision: str = "main") -> RemoteRepo:
    """Read the files of a repository with size and hash. NotFoundError for no such repository, else HubError."""
    if not is_repo(name):
        raise NotFoundError(f"{clean(name, keep_newlines=False)[:100]} cannot be the name of a repository")
    url = f"{http.access.endpoint}/api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
    row = get_json(http, url, name)
    siblings = row.get("siblings") if isinstance(row, dict) else None
    if not isinstance(siblings, list) or not is_commit(str(row.get("sha"))) or len(siblings) > MAX_FILES:
        raise _not_a_hub(url)
    files: dict[str, RemoteFile] = {}
    for file in filter(None, map(_file, siblings)):
        if files.setdefault(file.path, file) != file:
            raise HubError(f"{host_of(url)} lists {file.path} of {name} twice, as different files", MIRROR_HINT)
    return RemoteRepo(name, row["sha"], bool(row.get("gated")), _licence(row), tuple(files.values()))


def file_url(http: Http, repo: str, commit: str, path: str) -> str:
    """URL of a file at a commit, whose content never changes."""
    return f"{http.access.endpoint}/{repo}/resolve/{commit}/{quote(path)}"


def read_small_file(http: Http, repo: RemoteRepo, path: str, limit: int = 1 << 20) -> bytes:
    """Read a small file such as config.json without storing it. Raises like read_repo."""
    file = repo.file(path)
    if file.size > limit:
        raise HubError(f"{repo.name}: {path} has {file.size:,} bytes, more than the limit of {limit:,}")

    def read() -> bytes:
        with http.get(file_url(http, repo.name, repo.commit, path)) as response:
            check_status(response, http.access, repo.name, path)
            return response.read(limit)

    return patiently(http, http.access.endpoint, read)


def get_json(http: Http, url: str, repo: str = "") -> Any:
    """Fetch the JSON at `url`; the caller checks its shape. HubError where it is not JSON."""

    def read() -> bytes:
        with http.get(url) as response:
            check_status(response, http.access, repo)
            return response.read()

    try:
        return json.loads(patiently(http, url, read))
    except (ValueError, RecursionError):
        raise _not_a_hub(url) from None


def patiently(http: Http, url: str, ask: Callable[[], T]) -> T:
    """Call `ask`, again after a pause where the network or the hub failed; a note explains a long wait."""
    started = time.monotonic()
    with calling_after(SILENT_SECONDS, http.tell, f"waiting for {host_of(url)}, which is slow to answer"):
        for seconds in RETRY_SECONDS:
            try:
                return ask()
            except NetworkError as error:
                wait = max(seconds, error.wait_seconds)
                if wait > LONGEST_WAIT or time.monotonic() - started > MOST_SECONDS:
                    raise
                if error.wait_seconds:
                    http.tell(f"{error.message}: waiting {wait:.0f} s")
                time.sleep(wait)
        return ask()


def _not_a_hub(url: str) -> HubError:
    return HubError(f"{host_of(url)} does not answer as a hub should", MIRROR_HINT)


def _found(row: dict[str, Any]) -> FoundModel:
    gguf = row.get("gguf")
    about: dict[str, Any] = gguf if isinstance(gguf, dict) else {}
    arch = _text(about.get("architecture"))
    return FoundModel(
        repo=str(row["id"]),
        downloads=_count(row.get("downloads")),
        likes=_count(row.get("likes")),
        gated=bool(row.get("gated")),
        licence=_licence(row),
        arch=arch,
        n_params=_count(about.get("total")),
        max_context=_count(about.get("context_length")),
        sees=arch in SEEING and _has_projector(row.get("siblings")),
    )


def _has_projector(siblings: Any) -> bool:
    """Whether one of the files of a repository is a projector by its name."""
    names = (one.get("rfilename") for one in siblings if isinstance(one, dict)) if isinstance(siblings, list) else ()
    return any(isinstance(name, str) and is_gguf(name) and named_helper(name) == PROJECTOR for name in names)


def _file(row: Any) -> RemoteFile | None:
    """One entry of a listing, or None for an unsafe or incomplete one."""
    if not isinstance(row, dict) or not isinstance(row.get("rfilename"), str) or not is_file(row["rfilename"]):
        return None
    lfs = row.get("lfs")
    etag, size = row.get("blobId"), row.get("size")
    if isinstance(lfs, dict):
        etag, size = lfs.get("sha256") or lfs.get("oid"), lfs.get("size", size)
    if not isinstance(etag, str) or not is_etag(etag) or type(size) is not int or not 0 <= size < 1 << 50:
        return None
    return RemoteFile(row["rfilename"], size, etag)


def _licence(row: dict[str, Any]) -> str:
    tags = row.get("tags")
    tagged = [str(tag) for tag in tags if str(tag).startswith("license:")] if isinstance(tags, list) else []
    return _text(tagged[0].removeprefix("license:")) if tagged else ""


def _text(value: Any) -> str:
    return clean(value, keep_newlines=False)[:80] if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 60 else 0
