"""Whether a model can be run here, checked before its download."""

from collections.abc import Sequence

from localrun.base.errors import ModelFileError
from localrun.formats.gguf_names import is_weights
from localrun.hub.alternatives import nearest_runnable
from localrun.hub.network.http import Http
from localrun.hub.remote.headers import read_headers
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.model.capability import check_loadable


def require_runnable(http: Http, repo: RemoteRepo, files: Sequence[RemoteFile]) -> None:
    """Refuse files that would not load here, by their headers.

    Files other than weights are not checked. Raises ModelFileError, and HubError like a download.
    """
    if not any(is_weights(file.path) for file in files):
        return
    try:
        check_loadable(read_headers(http, repo, files))
    except ModelFileError as error:
        instead = (
            f"the nearest that runs is {nearest_runnable(repo.name)}: `localrun pull {nearest_runnable(repo.name)}`"
        )
        hint = {"UNSUPPORTED": instead, "BAD_TENSOR_TYPE": f"{error.hint}, or another model: {instead}"}
        told = f"nothing was downloaded: {error.message}"
        raise ModelFileError(error.code, told, hint=hint.get(error.code, error.hint)) from None
