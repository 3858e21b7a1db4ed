"""A small copy is upright, within its size, and like the image."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from localrun.base.errors import ImageError
from localrun.images.open import open_image
from localrun.images.thumbnail import thumbnail


def saved(image: Image.Image, kind: str, **more: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def gradient(width: int, height: int) -> Image.Image:
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], axis=2).astype(np.uint8))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_it_is_the_image_scaled_down(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(gradient(900, 600), kind, **({} if kind == "BMP" else {"exif": exif}))
    small, whole = thumbnail(data, 60), open_image(data).rgb
    assert small.mode == "RGB"
    assert max(small.size) == 60
    assert abs(small.width * whole.height - small.height * whole.width) < whole.width * 2
    expected = np.asarray(whole.resize(small.size)).astype(int)
    assert np.abs(np.asarray(small).astype(int) - expected).mean() < 4


def test_a_smaller_image_keeps_its_size() -> None:
    assert thumbnail(saved(gradient(5, 3), "PNG"), 60).size == (5, 3)


def test_a_thin_image_has_a_pixel_left() -> None:
    assert min(thumbnail(saved(gradient(2000, 1), "PNG"), 60).size) == 1


def test_a_damaged_file_is_an_error() -> None:
    with pytest.raises(ImageError):
        thumbnail(saved(gradient(300, 300), "PNG")[:200], 60)
