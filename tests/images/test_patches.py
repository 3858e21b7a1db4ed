"""Pixels and patches are those of the image processors of transformers that use Pillow alone, bit for bit."""

from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from transformers.models.gemma4.image_processing_pil_gemma4 import (
    Gemma4ImageProcessorPil,
    get_aspect_ratio_preserving_size,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

from localrun.base.errors import ImageError
from localrun.images.patches import patches_by_line, patches_by_square, pixels_of
from localrun.images.sizes import FillBudget, ScaledSize, SizeRule, SmartResize

HALF = (0.5, 0.5, 0.5)
FEW_PIXELS = SmartResize(32, min_pixels=4 * 32**2, max_pixels=20 * 32**2)
QWEN = SmartResize(32, min_pixels=65536, max_pixels=16777216)
ODD_SIDES = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 97, 128)
EVERY_ROW = 1 << 20


def odd_sizes() -> Iterator[tuple[int, int]]:
    for index, width in enumerate(ODD_SIDES):
        for step in range(14):
            yield width, ODD_SIDES[(index * 3 + step) % len(ODD_SIDES)]


def noise(width: int, height: int) -> Image.Image:
    """An image with every level, and edges that a resampling filter overshoots at."""
    drawn = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    drawn[: height // 2, : width // 2] = 255
    return Image.fromarray(drawn)


def test_patches_of_qwen_are_those_of_transformers() -> None:
    bounds = {"shortest_edge": FEW_PIXELS.min_pixels, "longest_edge": FEW_PIXELS.max_pixels}
    processor = Qwen2VLImageProcessorPil(patch_size=16, image_mean=HALF, image_std=HALF, size=bounds)
    sizes = [(w, h) for w, h in odd_sizes() if max(w, h) <= 97 * min(w, h)]
    assert len(sizes) >= 200
    for width, height in sizes:
        image = noise(width, height)
        expected = processor(image, return_tensors="np")
        size = FEW_PIXELS.scaled(width, height, EVERY_ROW)
        ours = patches_by_square(pixels_of(image, size, HALF, HALF), 16, 2)
        theirs = expected["pixel_values"].reshape(len(ours), 3, 2, 16 * 16)
        assert expected["image_grid_thw"].tolist() == [[1, size.lines * 2, size.columns * 2]]
        for frame in range(2):
            assert np.array_equal(theirs[:, :, frame].reshape(len(ours), -1), ours), (width, height)


def test_patches_of_gemma_are_those_of_transformers() -> None:
    processor = Gemma4ImageProcessorPil(max_soft_tokens=70)
    for width, height in odd_sizes():
        image = noise(width, height)
        expected = processor(image, return_tensors="np")
        size = FillBudget(48, 70).scaled(width, height, EVERY_ROW)
        ours = patches_by_line(pixels_of(image, size, (0, 0, 0), (1, 1, 1)), 16)
        assert expected["num_soft_tokens_per_image"] == [size.n_rows]
        assert np.array_equal(expected["pixel_values"][0, : len(ours)], ours), (width, height)


def sizes_of_photos() -> Iterator[tuple[int, int]]:
    random = np.random.default_rng(7)
    for _ in range(2000):
        width, height = (int(2 ** random.uniform(0, 13)) for _ in range(2))
        yield width, height


@pytest.mark.parametrize("most_rows", [128, 256, 1024, EVERY_ROW])
def test_sizes_of_qwen_are_those_of_transformers(most_rows: int) -> None:
    for width, height in sizes_of_photos():
        if max(width, height) > 8 * min(width, height):
            continue
        size = QWEN.scaled(width, height, most_rows)
        most = min(QWEN.max_pixels, most_rows * 32**2)
        assert (size.height, size.width) == smart_resize(height, width, 32, QWEN.min_pixels, most)
        assert size.n_rows <= most_rows


@pytest.mark.parametrize("budget", [70, 280, 1120])
def test_sizes_of_gemma_are_those_of_transformers(budget: int) -> None:
    for width, height in sizes_of_photos():
        try:
            expected = get_aspect_ratio_preserving_size(height, width, 16, budget * 9, 3)
        except ValueError:
            continue
        size = FillBudget(48, budget).scaled(width, height, EVERY_ROW)
        assert (size.height, size.width) == expected


@pytest.mark.parametrize(
    ("rule", "size", "most_rows", "code"),
    [
        (QWEN, (1, 201), EVERY_ROW, "TOO_LONG"),
        (QWEN, (1, 200), 4, "TOO_MANY_ROWS"),
        (FillBudget(48, 280), (100, 100), 8, "TOO_MANY_ROWS"),
    ],
)
def test_an_image_without_a_size_is_refused(rule: SizeRule, size: tuple[int, int], most_rows: int, code: str) -> None:
    with pytest.raises(ImageError) as error:
        rule.scaled(*size, most_rows)
    assert error.value.code == code


def test_a_smaller_budget_is_taken_where_rows_are_few() -> None:
    assert FillBudget(48, 280).scaled(1000, 1000, 100) == ScaledSize(384, 384, 8, 8)  # 70 of 280
