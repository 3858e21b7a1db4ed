"""Families of models that see: which file has which part for that, and how it is read and loaded. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from localrun.base.dataclass import dataclass
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource
from localrun.model.seeing import EMBEDDER_TYPES, GEMMA_TYPES, QWEN_ARCHS, QWEN_TYPES, type_of
from localrun.model.vision.embedder import (
    embedder_bytes,
    embedder_refs,
    embedder_working_bytes,
    load_embedder,
)
from localrun.model.vision.embedder_config import embedder
from localrun.model.vision.embedder_projector import EmbedderProjector
from localrun.model.vision.encoding import MakeEncoder
from localrun.model.vision.gemma_config import gemma_tower
from localrun.model.vision.gemma_projector import GemmaProjector
from localrun.model.vision.gemma_shapes import gemma_bytes, gemma_working_bytes
from localrun.model.vision.gemma_weights import gemma_refs, load_gemma_tower
from localrun.model.vision.projector import TowerProjector
from localrun.model.vision.read_config import tower_config, unsupported
from localrun.model.vision.shapes import BytesOf, EncoderBytes, TypeOf, tower_bytes, working_bytes
from localrun.model.vision.weights import load_tower, tower_refs
from localrun.model.weight_ref import WeightRef
from localrun.ops.image_rows import Projector
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch


class VisionConfig(Protocol):
    """Config of a part that sees."""

    @property
    def out_size(self) -> int:
        """Hidden size of the language model."""
        ...

    @property
    def n_added(self) -> int:
        """Layers of text that get additions."""
        ...


C = TypeVar("C", bound=VisionConfig)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Family(Generic[C, T]):
    """Config `C` and loaded weights `T` of one family."""

    types: tuple[str, ...]  # in `vision_config` of a checkpoint, and of a projector
    archs: tuple[str, ...]  # of GGUFs that it goes along with
    config: Callable[[TensorSource], C]
    refs: Callable[[C, TensorSource], dict[str, WeightRef]]
    weight_bytes: Callable[[C, Mapping[str, WeightRef], TypeOf, BytesOf], int]
    working_bytes: Callable[[C, Mapping[str, WeightRef], int, EncoderBytes], int]
    load: Callable[[TensorSource, C, Layout, torch.device | None], T]
    # With what loads the weights, what names them, and their bytes.
    projector: Callable[[C, Callable[[], T], MakeEncoder, Callable[[], str], int], Projector]


FAMILIES: tuple[Family[Any, Any], ...] = (
    Family(
        types=QWEN_TYPES,
        archs=tuple(QWEN_ARCHS),
        config=tower_config,
        refs=tower_refs,
        weight_bytes=tower_bytes,
        working_bytes=working_bytes,
        load=load_tower,
        projector=TowerProjector,
    ),
    Family(
        types=GEMMA_TYPES,
        archs=("gemma4",),
        config=gemma_tower,
        refs=gemma_refs,
        weight_bytes=gemma_bytes,
        working_bytes=gemma_working_bytes,
        load=load_gemma_tower,
        projector=GemmaProjector,
    ),
    Family(
        types=EMBEDDER_TYPES,
        archs=("gemma4",),
        config=embedder,
        refs=embedder_refs,
        weight_bytes=embedder_bytes,
        working_bytes=embedder_working_bytes,
        load=load_embedder,
        projector=EmbedderProjector,
    ),
)


def required_family(source: TensorSource) -> Family[Any, Any]:
    """The family of the part that sees in a checkpoint, or of a projector; ModelFileError where none is read."""
    kind = type_of(source)
    family = next((family for family in FAMILIES if kind in family.types), None)
    if family is None:
        raise unsupported(source.path, f"projectors of type {clean(kind)!r}")
    return family
