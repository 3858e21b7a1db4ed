"""A small copy of an image, for a person to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.images.open import as_rgb, opened, orientation

if TYPE_CHECKING:
    from PIL.Image import Image


def thumbnail(data: bytes, side: int) -> Image:
    """The first frame of an image file, upright, in 8-bit RGB and at most `side` pixels wide and high. ImageError where
    it cannot be opened."""
    with opened(data) as image:
        image.draft(None, (side, side))  # of a JPEG only the frequencies that such a size needs are decoded
        small = as_rgb(image)
        turn, _ = orientation(image)
    small.thumbnail((side, side))
    return small if turn is None else small.transpose(turn)
