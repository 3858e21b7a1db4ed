"""The half of a model that sees: in its checkpoint, or in a projector's file beside it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import prod
from pathlib import Path

from localrun.backends.interface import Backend
from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.base.machine import memory
from localrun.base.request import IMAGE_ROWS
from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.engine.image_encoder import KEPT_BYTES
from localrun.formats.gguf import open_gguf
from localrun.formats.helper_files import PROJECTOR, named_helper
from localrun.formats.source import TensorSource
from localrun.model.vision.config import TowerConfig
from localrun.model.vision.projector import TowerProjector
from localrun.model.vision.read_config import reads_images, tower_config
from localrun.model.vision.shapes import tower_bytes, working_bytes
from localrun.model.vision.tower import Tower
from localrun.model.vision.weights import load_tower, tower_refs
from localrun.model.weight_ref import WeightRef
from localrun.ops.layouts import Layout
from localrun.ops.types import NUMERICS_VERSION

NO_EYES = "choose a model that sees, such as one of Qwen3.5's, with its mmproj file in the same folder"
IN_MAIN_MEMORY = "images are read in main memory so far: load it with --backend cpu"
TAPPED = {"qwen35": False, "qwen35moe": False, "qwen3vl": True, "qwen3vlmoe": True}  # architectures of GGUFs that see
SAMPLE_BYTES = 1 << 16  # of every tensor, that name the weights of a tower


@dataclass(frozen=True, slots=True)
class OpenedTower:
    """A tower, checked and not loaded."""

    source: TensorSource
    config: TowerConfig
    refs: dict[str, WeightRef]

    def weight_bytes(self, layout: Layout) -> int:
        """Bytes of its weights once they are loaded."""
        return tower_bytes(self.config, self.refs, lambda ref: self.source.tensors[ref.name].qtype, layout.nbytes)

    def room(self, backend: Backend, layout: Layout, threads: int) -> int:
        """Bytes that seeing takes: the weights, the encoding of an image of the usual size, and what is kept of
        images."""
        encoding = working_bytes(self.config, self.refs, IMAGE_ROWS, partial(backend.encoder_bytes, threads=threads))
        return self.weight_bytes(layout) + encoding + KEPT_BYTES

    @property
    def n_added(self) -> int:
        """Layers of text that get additions."""
        return len(self.config.tapped)

    def identity(self) -> str:
        """Names the weights by the beginning of each of their tensors."""
        hashed = sha256()
        for ref in self.refs.values():
            info = self.source.tensors[ref.name]
            hashed.update(f"{info.name} {info.qtype} {info.shape} ".encode())
            share = min(1.0, SAMPLE_BYTES / info.nbytes)
            hashed.update(self.source.read(info.name, 0, max(1, int(share * prod(info.shape[:-1])))))
        return hashed.hexdigest()

    def projector(self, backend: Backend, layout: Layout) -> TowerProjector:
        """The tower on a backend; its weights are read with the first image."""
        n_bytes = self.weight_bytes(layout)
        arithmetic = f"{backend.rounding} {layout.name} {NUMERICS_VERSION}"

        def load() -> Tower:
            if (free := backend.memory(memory()).available) < n_bytes:
                told = f"the half of the model that sees takes {gib(n_bytes)}, and {gib(free)} are free"
                raise DoesNotFitError(told, "close other programs, or leave the image out")
            return load_tower(self.source, self.config, layout, backend.device)

        encoder = partial(backend.encoder, layout)
        return TowerProjector(self.config, load, encoder, lambda: f"{self.identity()} {arithmetic}", n_bytes)


@dataclass(frozen=True, slots=True)
class Sight:
    """The tower of a model, or why there is none, as a hint for the user."""

    tower: OpenedTower | None
    why_not: str = NO_EYES


BLIND = Sight(None)


def find_sight(source: TensorSource, hidden_size: int) -> Sight:
    """The tower in a checkpoint, or of the projector beside a GGUF that makes rows of this size. One that cannot be
    read is none: the text side of the model works without."""
    if source.format != "gguf":
        return first_fitting([source] if reads_images(source) else [], hidden_size)
    tapped = TAPPED.get(str(source.metadata.get("general.architecture")))
    beside = [] if tapped is None else projectors_beside(source.path)
    return first_fitting(map(open_gguf, beside), hidden_size, tapped)


def projectors_beside(path: Path) -> list[Path]:
    """The projectors in a model's folder: first those that are named most alike, among these one of 16 bits."""
    try:
        beside = sorted(path.parent.glob("*.gguf"))
    except OSError:
        return []
    found = [one for one in beside if named_helper(one.name) == PROJECTOR]
    words = set(re.findall(r"\w+", path.name.lower()))

    def likeness(one: Path) -> tuple[int, bool, str]:
        own = set(re.findall(r"\w+", one.name.lower()))
        return -len(own & words), "f16" not in own, one.name

    return sorted(found, key=likeness)


def first_fitting(sources: Iterable[TensorSource], hidden_size: int, tapped: bool | None = None) -> Sight:
    """The first that makes rows of this size and, where that is known, has layers of its own tapped or not."""
    why = NO_EYES
    try:
        for source in sources:
            config = tower_config(source)
            if config.out_size == hidden_size and tapped in (None, bool(config.tapped)):
                return Sight(OpenedTower(source, config, tower_refs(config, source)))
            why = f"{clean(source.path.name)} is the projector of another model: put the right one beside it"
    except ModelFileError as error:
        why = clean(error.message)
    return Sight(None, why)
