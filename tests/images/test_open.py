"""Image files of every kind open upright, in RGB; all others are refused with a name."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageOps

from localrun.base.errors import ImageError
from localrun.images import open as opening
from localrun.images.open import image_size, open_image

COLOURS = np.array([[[250, 10, 20], [10, 240, 30], [30, 20, 230]], [[0, 0, 0], [255, 255, 255], [120, 130, 140]]])

LOSSLESS: dict[str, dict[str, object]] = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}


def picture() -> Image.Image:
    return Image.fromarray(np.repeat(np.repeat(COLOURS.astype(np.uint8), 8, axis=0), 8, axis=1))  # 24 × 16


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF", "WEBP", "JPEG"])
def test_every_format_opens(kind: str) -> None:
    data = encoded(picture(), kind, **LOSSLESS.get(kind, {}))
    found = open_image(data)
    away = np.abs(np.asarray(found.rgb).astype(int) - np.asarray(picture()))
    assert away.max() <= (6 if kind == "JPEG" else 0)
    assert found.notes == ()
    assert image_size(data) == (24, 16)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_stands_upright(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(), kind, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(BytesIO(data)))
    assert np.array_equal(np.asarray(open_image(data).rgb), np.asarray(upright))
    assert image_size(data) == upright.size


def test_exif_that_cannot_be_read_is_told() -> None:
    data = encoded(picture(), "JPEG", exif=b"Exif\0\0II\x2a\0\xff\xff\xff\x7f")
    assert open_image(data).rgb.size == (24, 16)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_parts_are_white(mode: str) -> None:
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    image.putpixel((0, 0), (0, 0, 0, 255))
    rgb = open_image(encoded(image.convert(mode), "PNG")).rgb
    assert rgb.getpixel((0, 0)) == (0, 0, 0)
    assert rgb.getpixel((3, 3)) == (255, 255, 255)


def test_sixteen_bits_keep_their_shades() -> None:
    ramp = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    rgb = np.asarray(open_image(encoded(Image.fromarray(ramp), "PNG")).rgb)
    assert np.array_equal(rgb[:, :, 0].ravel(), np.arange(256))


def test_cmyk_opens() -> None:
    rgb = np.asarray(open_image(encoded(picture().convert("CMYK"), "JPEG", quality=100)).rgb).astype(int)
    assert np.abs(rgb - np.asarray(picture())).max() < 12


@pytest.mark.parametrize("size", [(1, 1), (700, 100), (1, 300)])
def test_odd_sizes_open(size: tuple[int, int]) -> None:
    assert open_image(encoded(Image.new("L", size, 7), "PNG")).rgb.size == size


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_a_film_the_first_frame_is_seen_and_that_is_told(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")]
    found = open_image(encoded(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True))
    assert found.notes == ("only its first frame is seen",)
    assert found.rgb.getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize(
    ("data", "code", "word"),
    [
        (b"", "EMPTY", "empty"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "UNREADABLE_FORMAT", "HEIC"),
        (b"\0\0\0\x18ftypavif\0\0\0\0avifmif1", "UNREADABLE_FORMAT", "AVIF"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "UNREADABLE_FORMAT", "SVG"),
        (b"\xef\xbb\xbf  <svg/>", "UNREADABLE_FORMAT", "SVG"),
        (b"%PDF-1.7", "UNREADABLE_FORMAT", "PDF"),
        (b"hello, world", "UNKNOWN_FORMAT", "kind"),
        (encoded(picture(), "PNG")[:50], "TRUNCATED", "truncated"),
        (encoded(picture(), "PNG").replace(b"IDAT", b"IDAT\xff"), "DAMAGED", "damaged"),
        (encoded(picture(), "JPEG")[:-200], "TRUNCATED", "truncated"),
        (encoded(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF"), "UNKNOWN_SAMPLES", "32 bits"),
    ],
)
def test_other_files_are_refused_by_name(data: bytes, code: str, word: str) -> None:
    with pytest.raises(ImageError) as error:
        open_image(data)
    assert error.value.code == code
    assert word in error.value.message
    assert error.value.hint


def png_of(width: int, height: int) -> bytes:
    """A small PNG that says it is large."""
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    body = zlib.compress(bytes(1 << 16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [7300, 12_000, 60_000, 2_000_000_000])
def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded(side: int) -> None:
    for ask in (open_image, image_size):
        with pytest.raises(ImageError) as error:
            ask(png_of(side, side))
        assert error.value.code in ("TOO_MANY_PIXELS", "DAMAGED")


def test_a_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_FILE_BYTES", 100)
    with pytest.raises(ImageError) as error:
        open_image(encoded(picture(), "BMP"))
    assert error.value.code == "FILE_TOO_LARGE"
