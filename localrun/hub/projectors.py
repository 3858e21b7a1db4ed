"""The half of a model that sees, in its repository or on disk: the projector of a GGUF, and what images cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.backends.registry import backend_in_main_memory
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError, ModelFileError
from localrun.engine.sight import find_sight
from localrun.fit.shape import shape_of
from localrun.formats.detect import open_model_file
from localrun.formats.gguf_names import is_gguf
from localrun.formats.helper_files import PROJECTOR, named_helper
from localrun.formats.source import TensorSource
from localrun.hub.disk.stored import StoredModel
from localrun.hub.network.http import Http
from localrun.hub.remote.headers import read_headers, read_remote
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.remote.variants import Variant
from localrun.model.seeing import may_see

if TYPE_CHECKING:  # with numpy, which other downloads do without
    from localrun.engine.image_cost import ImageCost

BEST_FIRST = ("bf16", "f16", "q8_0")  # as projectors are published: their weights are of bf16 checkpoints


@dataclass(frozen=True, slots=True)
class RemoteProjector:
    """The file of a projector that localrun reads, and what images through it cost."""

    file: RemoteFile
    cost: ImageCost


def projector_of(http: Http, repo: RemoteRepo, hidden_size: int) -> RemoteProjector | None:
    """The projector that GGUFs of the repository see with; None where it has none that is read. Raises HubError."""
    projectors = [file for file in repo.files if is_gguf(file.path) and named_helper(file.path) == PROJECTOR]
    for file in sorted(projectors, key=lambda file: (rank(file.path), file.path)):
        if (cost := cost_of_projector(http, repo, file, hidden_size)) is not None:
            return RemoteProjector(file, replace(cost, projector=file.path, file_bytes=file.size))
    return None


def with_file(variant: Variant, file: RemoteFile) -> Variant:
    """The variant, with one more file to download."""
    return replace(variant, files=(*variant.files, file))


def cost_of_projector(http: Http, repo: RemoteRepo, file: RemoteFile, hidden_size: int) -> ImageCost | None:
    """Cost of images by a projector's header; None where localrun does not read it."""
    from localrun.engine.tower import first_fitting

    try:
        tower, _ = first_fitting([read_headers(http, repo, [file])], hidden_size)
    except ModelFileError:
        return None
    return tower.cost(backend_in_main_memory()) if tower else None


def cost_of_checkpoint(http: Http, repo: RemoteRepo, variant: Variant, hidden_size: int) -> ImageCost | None:
    """Cost of images by the headers of a checkpoint, which are read where its config.json has a half that sees."""
    if not may_see(read_remote(http, repo, variant)):
        return None
    try:
        tower = find_sight(read_headers(http, repo, variant.files), hidden_size).tower
    except ModelFileError:
        return None
    return tower.cost(backend_in_main_memory()) if tower else None


def sight_of(
    http: Http, repo: RemoteRepo, variants: Sequence[Variant], hidden_size: int
) -> tuple[RemoteFile | None, ImageCost | None]:
    """The projector of a repository with GGUFs, and the cost of images of any. Raises HubError."""
    if not any(variant.format == "gguf" for variant in variants):
        return None, cost_of_checkpoint(http, repo, variants[0], hidden_size)
    found = projector_of(http, repo, hidden_size)
    return (found.file, found.cost) if found else (None, None)


def images_on_disk(stored: StoredModel) -> ImageCost | None:
    """Cost of images of a model on disk; None where it sees none, or cannot be read."""
    try:
        source = open_model_file(stored.path)
        return cost_on_disk(source, shape_of(source).config.hidden_size)
    except LocalrunError:
        return None


def cost_on_disk(source: TensorSource, hidden_size: int) -> ImageCost | None:
    """Cost of images of a model on disk; None where it sees none."""
    tower = find_sight(source, hidden_size).tower
    return tower.cost(backend_in_main_memory()) if tower else None


def rank(path: str) -> int:
    """Place of a projector's file type among those that are wanted."""
    words = path.lower().replace(".", "-").split("-")
    return next((place for place, word in enumerate(BEST_FIRST) if word in words), len(BEST_FIRST))
