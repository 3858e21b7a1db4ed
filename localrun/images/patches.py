"""Patches: an image scaled, normalised and cut up, in the order in which a family of models reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from localrun.images.sizes import ScaledSize

if TYPE_CHECKING:
    from PIL.Image import Image


def pixels_of(rgb: Image, size: ScaledSize, mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """Scale by Pillow's bicubic filter, and normalise: (x / 255 - mean) / std -> f32 [height, width, 3]."""
    from PIL.Image import Resampling

    scaled = np.asarray(rgb.resize((size.width, size.height), Resampling.BICUBIC))
    table = levels(mean, std)
    return np.stack([table[channel][scaled[:, :, channel]] for channel in range(3)], axis=2)


def levels(mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """The 256 levels of each channel after normalising -> f32 [3, 256], rounded as transformers rounds them."""
    scaled = (np.arange(256, dtype=np.float64) * (1 / 255)).astype(np.float32)
    low, spread = (np.asarray(numbers, np.float32)[:, None] for numbers in (mean, std))
    return (scaled[None] - low) / spread


def patches_by_square(pixels: np.ndarray, patch: int, merge: int) -> np.ndarray:
    """Patches of Qwen: those of each square of merge · merge patches together -> f32 [n_patches, 3 · patch · patch].

    A patch has its channels one after the other. Transformers has each frame twice, as films have two.
    """
    height, width, channels = pixels.shape
    square = merge * patch
    cut = pixels.reshape(height // square, merge, patch, width // square, merge, patch, channels)
    return np.ascontiguousarray(cut.transpose(0, 3, 1, 4, 6, 2, 5)).reshape(-1, channels * patch * patch)


def patches_by_line(pixels: np.ndarray, patch: int) -> np.ndarray:
    """Patches of Gemma 4, line by line -> f32 [n_patches, patch · patch · 3], the channels of a pixel together."""
    height, width, channels = pixels.shape
    cut = pixels.reshape(height // patch, patch, width // patch, patch, channels)
    return np.ascontiguousarray(cut.transpose(0, 2, 1, 3, 4)).reshape(-1, patch * patch * channels)
