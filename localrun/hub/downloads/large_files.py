"""Files that the hub does not serve in one piece over plain HTTP: huggingface_hub fetches them, localrun verifies."""

import hashlib
import os
from pathlib import Path
from typing import Any

from localrun.base.errors import HubError
from localrun.hub.disk.hf_cache import blob_path
from localrun.hub.downloads.progress import Control, Meter
from localrun.hub.network.http import Http, NetworkError
from localrun.hub.remote.repo import RemoteFile, RemoteRepo

PLAIN_HTTP_BYTES = 50 * 1000**3  # as huggingface_hub has it: beyond, the hub's chunk protocol (Xet) is needed
_READ_BYTES = 8 << 20


def fetch_large(http: Http, repo: RemoteRepo, file: RemoteFile, control: Control, meter: Meter) -> None:
    """Fetch one file with huggingface_hub into the same cache. HubError for failures, a wrong hash included."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    try:
        huggingface_hub.hf_hub_download(
            repo.name,
            file.path,
            revision=repo.commit,
            cache_dir=http.access.cache,
            endpoint=http.access.endpoint,
            token=http.access.token or False,
            tqdm_class=_counting_bar(control, meter),
        )
    except HfHubHTTPError as error:
        status = getattr(getattr(error, "response", None), "status_code", "unknown")
        raise NetworkError(f"the hub refuses {file.path} (status {status})", "try again in a minute") from None
    blob = blob_path(http.access.cache, repo.name, file)
    if _sha256(blob, control) != file.etag:
        os.remove(blob)
        raise HubError(f"{file.path} does not have the checksum that the hub announces", "nothing was kept; try again")


def _counting_bar(control: Control, meter: Meter) -> Any:
    """A progress bar that draws nothing: it counts bytes, and ends a cancelled download."""
    from huggingface_hub import utils

    def update(bar: Any, n: float | None = 1) -> None:
        control.check()
        meter.add(int(n or 0))

    def begin(bar: Any, *args: Any, **more: Any) -> None:
        base.__init__(bar, *args, **{**more, "disable": True})

    base: Any = utils.tqdm  # type: ignore[attr-defined]
    return type("CountingBar", (base,), {"__init__": begin, "update": update})


def _sha256(path: Path, control: Control) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            control.check()
            digest.update(data)
    return digest.hexdigest()
