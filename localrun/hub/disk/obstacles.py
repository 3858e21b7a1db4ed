"""Why models on disk cannot be run, and whether they see, by the starts of their files."""

from pathlib import Path

from localrun.base.errors import LocalrunError
from localrun.engine.sight import find_sight
from localrun.formats.detect import open_model_file
from localrun.formats.files import fetch_from
from localrun.formats.json_files import read_json
from localrun.formats.metadata import Metadata
from localrun.hub.disk.stored import StoredModel
from localrun.hub.header_model import HeaderModel, read_key_values, without_rope_tensors
from localrun.model.capability import check_loadable, obstacle
from localrun.model.seeing import may_see


def stored_obstacle(model: StoredModel) -> str:
    """Why a model on disk cannot be run, by the start of its file; empty when no reason is known.

    For Ollama's models all tensors are checked, because Ollama's converter uses some names that localrun does not know.
    """
    try:
        if model.source == "ollama":
            check_loadable(open_model_file(model.path))
            return ""
        return obstacle(without_rope_tensors(skim(model)))
    except OSError as error:
        return error.strerror or type(error).__name__
    except LocalrunError as error:
        why = error.message.removeprefix(f"{getattr(error, 'path', '')}: ")
        return f"config.json: {why}" if model.format == "safetensors" else why


def sees_images(model: StoredModel) -> bool:
    """Whether a model on disk sees images, by the start of its file and of a projector's beside it."""
    try:
        source = skim(model)
        if source.format != "gguf":
            return may_see(source)
        hidden_size = source.metadata.get(f"{source.metadata.get('general.architecture')}.embedding_length")
        return isinstance(hidden_size, int) and find_sight(source, hidden_size).tower is not None
    except (LocalrunError, OSError):
        return False


def skim(model: StoredModel) -> HeaderModel:
    """A model on disk by the start of its file. Raises LocalrunError and OSError."""
    if model.format == "safetensors":
        path: Path = model.path / "config.json"
        return HeaderModel(path, "safetensors", Metadata(read_json(path, "BAD_CONFIG"), path), 0)
    size = model.path.stat().st_size
    return HeaderModel(model.path, "gguf", read_key_values(fetch_from(model.path), size, model.path), 0)
