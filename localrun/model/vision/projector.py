"""The projector of a model with a tower: plans of images, and their rows."""

from collections.abc import Callable, Sequence

import numpy as np

from localrun.images.open import open_image
from localrun.images.patches import patches_by_square, pixels_of
from localrun.images.sizes import ScaledSize
from localrun.model.vision.config import TowerConfig
from localrun.model.vision.encoding import EncoderPart, MakeEncoder
from localrun.model.vision.positions import axial_angles, learned_positions, places_by_square
from localrun.model.vision.tower import Tower
from localrun.ops.encoder_program import EncoderInput
from localrun.ops.image_rows import EncodeProgress, ImageMarks, ImagePlan, ImageRows
from localrun.ops.interface import Angles, CancelFlag

MARKS = ImageMarks("<|image_pad|>")  # the template writes the marks around it


class TowerProjector(EncoderPart[Tower]):
    """A tower on a backend."""

    marks = MARKS

    def __init__(
        self,
        config: TowerConfig,
        load: Callable[[], Tower],
        make_encoder: MakeEncoder,
        identify: Callable[[], str],
        weight_bytes: int,
    ) -> None:
        super().__init__(load, make_encoder, identify, config_name(config), weight_bytes)
        self.config = config

    @property
    def n_added(self) -> int:
        return len(self.config.tapped)

    def plan(self, width: int, height: int, most_rows: int) -> ImagePlan:
        return image_plan(self.config, width, height, most_rows)

    def encode(self, data: bytes, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        return self.rows_of([patches_of(data, plan, self.config)], [plan], progress, cancel)[0]

    def rows_of(
        self, patches: Sequence[np.ndarray], plans: Sequence[ImagePlan], progress: EncodeProgress, cancel: CancelFlag
    ) -> list[ImageRows]:
        """Rows of several images at once, each by itself; `patches` are f32 [n_patches, patch_values] of each."""
        config, stages = self.tower.config, self.tower.stages()
        lengths = [len(one) for one in patches]
        positions, angles = self.places(plans)
        given, left = [np.concatenate(patches), positions], []
        for number, stage in enumerate(stages):
            share = stage_progress(progress, number, len(stages) + 1)
            given = [self.run(stage, EncoderInput(given, lengths, [angles], cancel), share)]
            left.append(given[0])
        normed = self.run(self.tower.last_norm(), EncoderInput(given, lengths, [], cancel))
        taps = [(self.tower.tap(weights), x) for weights, x in zip(self.tower.weights.taps, left, strict=False)]
        merged = [
            (recording, x.reshape(-1, config.merged_size)) for recording, x in [(self.tower.merger(), normed), *taps]
        ]
        found = [self.run(recording, EncoderInput([x], [len(x)], [], cancel)) for recording, x in merged]
        progress(1.0)
        ends = np.cumsum([plan.n_rows for plan in plans])[:-1]
        rows, *added = ([*np.split(x, ends)] for x in found)
        return [ImageRows(rows[image], tuple(x[image] for x in added)) for image in range(len(plans))]

    def places(self, plans: Sequence[ImagePlan]) -> tuple[np.ndarray, Angles]:
        """Learned positions of all patches, and the angles of their rope."""
        config, table = self.tower.config, self.tower.weights.positions
        learned, cos, sin = [], [], []
        for plan in plans:
            lines, columns = plan.height // config.patch_size, plan.width // config.patch_size
            places = places_by_square(lines, columns, config.merge)
            learned.append(learned_positions(table, lines, columns, places))
            angles = axial_angles(places, config.head_dim, config.rope_theta)
            cos.append(angles[0])
            sin.append(angles[1])
        return np.concatenate(learned), (np.concatenate(cos), np.concatenate(sin))


def image_plan(config: TowerConfig, width: int, height: int, most_rows: int) -> ImagePlan:
    """Size and cost of an image of that many pixels. ImageError where it has none."""
    size = config.sizes.scaled(width, height, most_rows)
    grid = size.lines, size.columns
    return ImagePlan(size.width, size.height, size.n_rows, grid, config.tflop(size.n_rows))


def patches_of(data: bytes, plan: ImagePlan, config: TowerConfig) -> np.ndarray:
    """Patches of an image file, f32 [n_patches, patch_values]. Raises ImageError."""
    side = config.patch_size * config.merge
    size = ScaledSize(plan.width, plan.height, plan.width // side, plan.height // side)
    pixels = pixels_of(open_image(data).rgb, size, config.mean, config.std)
    return patches_by_square(pixels, config.patch_size, config.merge)


def stage_progress(progress: EncodeProgress, number: int, count: int) -> EncodeProgress:
    """EncodeProgress of one of `count` stages, as that of all."""
    return lambda share: progress((number + share) / count)


def config_name(config: TowerConfig) -> str:
    """Everything of a config that rows depend on beside the weights."""
    return f"{config.eps} {config.activation} {config.tapped} {config.sizes} {config.mean} {config.std}"
