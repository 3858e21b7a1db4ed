"""The projector of a model with Gemma 4's embedder of images (12B): plans of images, and their rows."""

import numpy as np

from localrun.images.open import open_image
from localrun.images.patches import patches_by_line, pixels_of
from localrun.images.sizes import ScaledSize
from localrun.model.vision.embedder import Embedder
from localrun.model.vision.embedder_config import EmbedderConfig
from localrun.model.vision.gemma_projector import GemmaPart, places_by_line
from localrun.ops.encoder_program import EncoderInput
from localrun.ops.image_rows import EncodeProgress, ImagePlan, ImageRows
from localrun.ops.interface import CancelFlag

ZEROS, ONES = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)  # mean and deviation: pixels lie between 0 and 1


class EmbedderProjector(GemmaPart[EmbedderConfig, Embedder]):
    """An embedder on a backend."""

    def encode(self, data: bytes, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        side = self.config.patch_size
        size = ScaledSize(plan.width, plan.height, plan.width // side, plan.height // side)
        patches = patches_by_line(pixels_of(open_image(data).rgb, size, ZEROS, ONES), side)
        if self.tower.by_colour:
            patches = by_colour(patches, side)
        n = [len(patches)]
        rows = self.run(self.tower.patches(), EncoderInput([patches], n, [], cancel), progress)
        of_columns, of_lines = self.tower.weights.positions
        columns, lines = places_by_line(size.lines, size.columns)
        placed = rows + (of_columns[columns] + of_lines[lines])
        rows = self.run(self.tower.projection(), EncoderInput([placed], n, [], cancel))
        progress(1.0)
        return ImageRows(rows)


def by_colour(patches: np.ndarray, side: int) -> np.ndarray:
    """Patches with the numbers of each colour one after the other, f32 [n_patches, 3 · side · side]."""
    ordered = patches.reshape(-1, side, side, 3).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(ordered).reshape(len(patches), -1)
