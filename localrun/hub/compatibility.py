"""Whether a model can be run here, checked before its download and for models on disk."""

from collections.abc import Sequence
from pathlib import Path

from localrun.base.errors import LocalrunError, ModelFileError
from localrun.formats.detect import open_model_file
from localrun.formats.files import fetch_from
from localrun.formats.gguf_names import is_weights
from localrun.formats.json_files import read_json
from localrun.formats.metadata import Metadata
from localrun.hub.alternatives import nearest_runnable
from localrun.hub.http import Http
from localrun.hub.remote import RemoteModel, read_headers, read_key_values, without_rope_tensors
from localrun.hub.remote_repo import RemoteFile, RemoteRepo
from localrun.hub.stored import StoredModel
from localrun.model.capability import check_loadable, obstacle


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


def stored_obstacle(model: StoredModel) -> str:
    """Why a model on disk cannot be run, by the start of its file; empty when no reason is known.

    For Ollama's models all tensors are checked, because Ollama's converter uses some names that localrun does not know.
    """
    try:
        if model.source == "ollama":
            check_loadable(open_model_file(model.path))
            return ""
        return obstacle(without_rope_tensors(_skim(model)))
    except OSError as error:
        return error.strerror or type(error).__name__
    except LocalrunError as error:
        why = error.message.removeprefix(f"{getattr(error, 'path', '')}: ")
        return f"config.json: {why}" if model.format == "safetensors" else why


def sees_images(model: StoredModel) -> bool:
    """Whether a model on disk sees images, by the start of its file and of a projector's beside it."""
    from localrun.engine.sight import find_sight
    from localrun.model.vision.families import family_of

    try:
        source = _skim(model)
        if source.format != "gguf":
            return family_of(source) is not None
        hidden_size = source.metadata.get(f"{source.metadata.get('general.architecture')}.embedding_length")
        return isinstance(hidden_size, int) and find_sight(source, hidden_size).tower is not None
    except (LocalrunError, OSError):
        return False


def _skim(model: StoredModel) -> RemoteModel:
    if model.format == "safetensors":
        path: Path = model.path / "config.json"
        return RemoteModel(path, "safetensors", Metadata(read_json(path, "BAD_CONFIG"), path), 0)
    size = model.path.stat().st_size
    return RemoteModel(model.path, "gguf", read_key_values(fetch_from(model.path), size, model.path), 0)
