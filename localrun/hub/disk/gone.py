"""Errors for a model that was on the disk and is not any more."""

from pathlib import Path

from localrun.base.errors import NotFoundError
from localrun.formats.files import shown
from localrun.hub.disk.stored import StoredModel


def model_is_gone(name: str, path: Path, pull: str = "") -> NotFoundError:
    """The error for a model whose file at `path` is gone; `pull` is the name by which the hub has it."""
    again = f"`localrun pull {pull}` fetches it again" if pull else "put it back, or choose another: `localrun list`"
    return NotFoundError(f"{name} is not on the disk any more: {shown(str(path))} was deleted or moved", again)


def stored_is_gone(model: StoredModel, path: Path) -> NotFoundError:
    """The same for a model of a list, of which the file or folder at `path` is gone."""
    wanted = f"{model.repo or model.name}:{(model.is_main and model.precision) or model.path.name}"
    return model_is_gone(f"{model.name} {model.precision}", path, wanted if model.source == "hub" else "")
