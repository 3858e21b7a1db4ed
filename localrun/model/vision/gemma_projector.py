"""The projector of a model with a tower of Gemma 4: plans of images, and their rows."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np

from localrun.images.open import open_image
from localrun.images.patches import patches_by_line, pixels_of
from localrun.images.sizes import FillBudget, ScaledSize
from localrun.model.vision.encoding import EncoderPart, MakeEncoder
from localrun.model.vision.gemma_config import GemmaTowerConfig
from localrun.model.vision.gemma_tower import GemmaTower
from localrun.model.vision.positions import PatchPlaces, axial_angles
from localrun.ops.encoder_program import EncoderInput
from localrun.ops.image_rows import EncodeProgress, ImageMarks, ImagePlan, ImageRows
from localrun.ops.interface import CancelFlag

MARKS = ImageMarks("<|image|>", before="<|image>", after="<image|>")
HALF = (0.5, 0.5, 0.5)  # mean and deviation: pixels lie between -1 and 1


T = TypeVar("T")


class GemmaConfig(Protocol):
    """Sizes of images, and their cost."""

    @property
    def sizes(self) -> FillBudget: ...

    def tflop(self, n_rows: int) -> float: ...


C = TypeVar("C", bound=GemmaConfig)


class GemmaPart(EncoderPart[T], Generic[C, T]):
    """Common part of Gemma 4's projectors, by config `C`."""

    marks = MARKS
    n_added = 0

    def __init__(
        self,
        config: C,
        load: Callable[[], T],
        make_encoder: MakeEncoder,
        identify: Callable[[], str],
        weight_bytes: int,
    ) -> None:
        super().__init__(load, make_encoder, identify, str(config), weight_bytes)
        self.config = config

    def plan(self, width: int, height: int, most_rows: int) -> ImagePlan:
        size = self.config.sizes.scaled(width, height, most_rows)
        return ImagePlan(size.width, size.height, size.n_rows, None, self.config.tflop(size.n_rows))


class GemmaProjector(GemmaPart[GemmaTowerConfig, GemmaTower]):
    """A tower on a backend."""

    def encode(self, data: bytes, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        return self.rows_of(patches_of(data, plan, self.config), plan, progress, cancel)

    def rows_of(self, patches: np.ndarray, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        """Rows of an image from its patches, f32 [n_patches, patch_values]."""
        config, n = self.config, len(patches)
        lines, columns = plan.height // config.patch_size, plan.width // config.patch_size
        places = places_by_line(lines, columns)
        angles = axial_angles(places, config.head_dim, config.rope_theta)
        given = [patches, self.positions(places)]
        left = self.run(self.tower.blocks(), EncoderInput(given, [n], [angles], cancel), progress)
        pooled = self.pooled(left.reshape(lines, columns, -1))
        rows = self.run(self.tower.projection(), EncoderInput([pooled], [len(pooled)], [], cancel))
        progress(1.0)
        return ImageRows(rows)

    def positions(self, places: PatchPlaces) -> np.ndarray:
        """Rows of both tables for patches at `places`, added up: f32 [n_patches, hidden]."""
        (of_columns, of_lines), (columns, lines) = self.tower.weights.positions, places
        added: np.ndarray = of_columns[columns] + of_lines[lines]
        return added

    def pooled(self, left: np.ndarray) -> np.ndarray:
        """Means of squares of patches [lines, columns, hidden], scaled and standardised: f32 [n_rows, hidden]."""
        lines, columns, hidden = left.shape
        pool = self.config.pool
        squares = left.reshape(lines // pool, pool, columns // pool, pool, hidden)
        rows = squares.mean(axis=(1, 3), dtype=np.float32).reshape(-1, hidden) * np.float32(hidden**0.5)
        if self.tower.weights.standard is not None:
            taken_off, scale = self.tower.weights.standard
            rows = (rows - taken_off) * scale
        return np.ascontiguousarray(rows)


def patches_of(data: bytes, plan: ImagePlan, config: GemmaTowerConfig) -> np.ndarray:
    """Patches of an image file, f32 [n_patches, patch_values]. Raises ImageError."""
    side = config.patch_size * config.pool
    size = ScaledSize(plan.width, plan.height, plan.width // side, plan.height // side)
    return patches_by_line(pixels_of(open_image(data).rgb, size, HALF, HALF), config.patch_size)


def places_by_line(lines: int, columns: int) -> PatchPlaces:
    """Columns and lines of patches, line by line."""
    line, column = np.divmod(np.arange(lines * columns), columns)
    return column, line
