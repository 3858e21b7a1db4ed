"""Towers, the halves of models that see: in a checkpoint, or in a projector's file beside a GGUF."""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError, ImageError, ModelFileError
from localrun.base.image_size import IMAGE_ROWS
from localrun.base.machine import memory
from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.engine.image_cost import USUAL_IMAGES, ImageCost
from localrun.engine.image_encoder import KEPT_BYTES
from localrun.fit.plan import USUAL_THREADS
from localrun.formats.checkpoints.fp16_scales import PowerOfTwo
from localrun.formats.gguf import GgufFile, open_gguf
from localrun.formats.helper_files import PROJECTOR, named_helper
from localrun.formats.safetensors import SafetensorsFolder
from localrun.formats.source import TensorSource
from localrun.model.seeing import QWEN_ARCHS
from localrun.model.vision.families import Family, VisionConfig, required_family
from localrun.model.weight_ref import WeightRef
from localrun.ops.image_rows import Projector
from localrun.ops.layouts import Layout
from localrun.ops.types import ENCODER_NUMERICS, NUMERICS_VERSION
from localrun.storage.identity import Identity


@dataclass(frozen=True, slots=True)
class OpenedTower:
    """A tower, checked and not loaded."""

    source: TensorSource
    family: Family[Any, Any]
    config: VisionConfig
    refs: dict[str, WeightRef]

    def weight_bytes(self, layout: Layout) -> int:
        """Bytes of its weights once they are loaded."""
        return self.family.weight_bytes(self.config, self.refs, self.type_of, layout.nbytes)

    def cost(self, backend: Backend, layout: Layout | None = None, threads: int = USUAL_THREADS) -> ImageCost:
        """Memory and tokens of images, once the weights are in `layout`; None: as the backend holds them."""
        matrix_bytes = backend.matrix_bytes if layout is None else layout.nbytes
        weights = self.family.weight_bytes(self.config, self.refs, self.type_of, matrix_bytes)
        encoder_bytes = partial(backend.encoder_bytes, threads=threads)
        encoding = self.family.working_bytes(self.config, self.refs, IMAGE_ROWS, encoder_bytes)
        projector = self.source.path.name if self.source.format == "gguf" else ""
        return ImageCost(weights, weights + encoding + KEPT_BYTES, tuple(map(self.tokens, USUAL_IMAGES)), projector)

    def tokens(self, size: tuple[int, int]) -> int:
        """Tokens of an image of so many pixels, width and height; 0 where it has no size."""

        def never(*_: object) -> Any:
            raise AssertionError("a plan needs no weights")

        try:
            return self.family.projector(self.config, never, never, never, 0).plan(*size, IMAGE_ROWS).n_rows
        except ImageError:
            return 0

    def type_of(self, ref: WeightRef) -> str:
        """The type of a weight in its file."""
        return self.source.tensors[ref.name].qtype

    def has_wide_scales(self) -> bool:
        """Whether fp16 does not hold the scales of a matrix, which are read for that. Raises ModelFileError."""
        if not isinstance(self.source, SafetensorsFolder):
            return False
        factors = [self.source.joined.get(ref.name) for ref in self.refs.values()]
        read_rows = self.source.read_rows
        return any(isinstance(one, PowerOfTwo) and not one.matrix.fits_fp16(read_rows) for one in factors)

    def identity(self) -> str:
        """Names the weights by every byte of their files; empty where those may have changed."""
        return Identity(self.source).result() if isinstance(self.source, GgufFile | SafetensorsFolder) else ""

    @property
    def n_added(self) -> int:
        """Layers of text that get additions."""
        return self.config.n_added

    def projector(self, backend: Backend, layout: Layout) -> Projector:
        """The tower on a backend; its weights are read with the first image. Where they cannot be named, nothing that
        is computed with them is found again by another process."""
        n_bytes = self.weight_bytes(layout)
        arithmetic = f"{backend.rounding} {layout.name} {NUMERICS_VERSION} {ENCODER_NUMERICS}"

        def load() -> Any:
            if (free := backend.memory(memory()).available) < n_bytes:
                told = f"the half of the model that sees takes {gib(n_bytes)}, and {gib(free)} are free"
                raise DoesNotFitError(told, "close other programs, or leave the image out")
            return self.family.load(self.source, self.config, layout, backend.device)

        encoder = partial(backend.encoder, layout)
        return self.family.projector(
            self.config, load, encoder, lambda: f"{self.identity() or token_hex(16)} {arithmetic}", n_bytes
        )


def find_tower(source: TensorSource, hidden_size: int) -> tuple[OpenedTower | None, str]:
    """The tower in a checkpoint that may see, or of the projector beside a GGUF that makes rows of this size; or why
    there is none, where a file is to blame. One that cannot be read is none: the text side works without."""
    if source.format != "gguf":
        return first_fitting([source], hidden_size)
    arch = str(source.metadata.get("general.architecture"))
    return first_fitting(map(open_gguf, projectors_beside(source.path)), hidden_size, arch)


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


def first_fitting(
    sources: Iterable[TensorSource], hidden_size: int, arch: str | None = None
) -> tuple[OpenedTower | None, str]:
    """The first that makes rows of this size and, beside a GGUF, goes along with its architecture; or why none does."""
    why = ""
    try:
        for source in sources:
            family = required_family(source)
            config = family.config(source)
            if config.out_size == hidden_size and goes_along(family, config, arch):
                return OpenedTower(source, family, config, family.refs(config, source)), ""
            why = f"{clean(source.path.name)} is the projector of another model: put the right one beside it"
    except ModelFileError as error:
        why = clean(error.message)
    return None, why


def goes_along(family: Family[Any, Any], config: VisionConfig, arch: str | None) -> bool:
    """Whether a projector is one of a GGUF of this architecture; None: it is a part of its own checkpoint."""
    return arch is None or (arch in family.archs and QWEN_ARCHS.get(arch, False) == bool(config.n_added))
