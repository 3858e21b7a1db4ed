"""Shape of a model of the catalogue, known without a network."""

import json
from functools import cache
from pathlib import Path

from localrun.fit.shape import ModelShape, shape_of
from localrun.formats.metadata import Metadata
from localrun.hub.catalogue import CatalogueModel
from localrun.hub.header_model import HeaderModel


def catalogue_shape(model: CatalogueModel) -> ModelShape | None:
    """Shape of a catalogue model, for sizes only; None where the catalogue has no config of it."""
    if "config" not in model:
        return None
    return _shape(model.get("safetensors", ""), json.dumps(model["config"]))


@cache
def _shape(repo: str, config: str) -> ModelShape:
    path = Path(repo) / "config.json"
    metadata = Metadata({"rms_norm_eps": 1e-6, **json.loads(config)}, path)
    return shape_of(HeaderModel(path, "safetensors", metadata, fetched=0))
