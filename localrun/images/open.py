"""Opening of image files from untrusted bytes: upright, in 8-bit RGB. Pillow is imported with the first one."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.base.errors import ImageError
from localrun.base.image_file import MAX_FILE_BYTES

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose

PLUGINS = {  # modules of Pillow by format
    "PNG": "PngImagePlugin",
    "JPEG": "JpegImagePlugin",
    "WEBP": "WebPImagePlugin",
    "GIF": "GifImagePlugin",
    "BMP": "BmpImagePlugin",
    "TIFF": "TiffImagePlugin",
}
FORMATS = tuple(PLUGINS)
SUFFIX_OF = {"JPEG": ".jpg", "MPO": ".jpg", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp", "TIFF": ".tif"}  # else .png
MAX_PIXELS = 52_000_000  # a camera of 50 megapixels; with all copies less than 1 GiB
MAX_WEBP_PIXELS = 26_000_000  # the decoder holds four copies of its own
UNREADABLE = {  # formats by how their files begin: at which byte, with what
    "HEIC": (4, (b"ftyphei", b"ftyphev", b"ftypmif1", b"ftypmsf1")),
    "AVIF": (4, (b"ftypavif", b"ftypavis")),
    "JPEG XL": (0, (b"\xff\x0a", b"\0\0\0\x0cJXL ")),
    "JPEG 2000": (0, (b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51")),
    "Photoshop": (0, (b"8BPS",)),
    "PDF": (0, (b"%PDF-",)),
    "SVG": (0, (b"<svg",)),
}
ORIENTATION_TAG = 0x0112  # of EXIF
SAVE_AS = "save it as PNG or JPEG"
ERRORS_OF_PILLOW = (  # about a file that is not as its format says
    *(OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError),
    *(OverflowError, ZeroDivisionError, RuntimeError, struct.error),
)


@dataclass(frozen=True, slots=True)
class OpenedImage:
    """An image as a person sees it, and what a user should know of how it was read."""

    rgb: Image  # mode RGB, turned as its EXIF says
    notes: tuple[str, ...] = ()


def open_image(data: bytes) -> OpenedImage:
    """Decode the first frame of an image file, transparent parts over white. ImageError where that cannot be done."""
    with opened(data) as image:
        notes = ("only its first frame is seen",) if is_animated(image) else ()
        rgb = as_rgb(image)
        turn, unread = orientation(image)
    return OpenedImage(rgb if turn is None else rgb.transpose(turn), (*notes, *unread))


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels as `open_image` would have them. ImageError where it would not open."""
    with opened(data) as image:
        turn, _ = orientation(image)
        return image.size[::-1] if turn in turns_with_swap() else image.size


def format_suffix(data: bytes) -> str:
    """The suffix of a file of this format, such as `.png`. ImageError where it would not open."""
    with opened(data) as image:
        return SUFFIX_OF.get(image.format or "", ".png")


@contextmanager
def opened(data: bytes) -> Iterator[Image]:
    """The file, its header read and its size checked; errors of Pillow inside become ImageErrors."""
    from PIL import Image, UnidentifiedImageError

    for module in PLUGINS.values():
        import_module(f"PIL.{module}")
    check_format(data)
    if len(data) > MAX_FILE_BYTES:
        told = f"the image file has {len(data) >> 20:,} MiB; {MAX_FILE_BYTES >> 20:,} MiB are the most"
        raise ImageError("FILE_TOO_LARGE", told, "make it smaller")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large file, which is refused here, and of odd metadata
            with Image.open(BytesIO(data), formats=FORMATS) as image:
                check_size(image)
                yield image
    except Image.DecompressionBombError:
        raise ImageError("TOO_MANY_PIXELS", "the image has far too many pixels", "make it smaller") from None
    except UnidentifiedImageError:
        told = "the file is no image of a known kind, or its beginning is damaged"
        raise ImageError("UNKNOWN_FORMAT", told, "PNG, JPEG, WebP, GIF, BMP and TIFF are") from None
    except MemoryError:
        raise ImageError("NO_MEMORY", "memory ran out while the image was read", "make it smaller") from None
    except ERRORS_OF_PILLOW as error:
        code = "TRUNCATED" if "truncated" in str(error).lower() else "DAMAGED"
        raise ImageError(code, f"the image is {code.lower()}", f"{SAVE_AS} again, or take another copy") from None


def check_format(data: bytes) -> None:
    """Raise ImageError with the name of a format that cannot be read."""
    if not data:
        raise ImageError("EMPTY", "the image file is empty", "take another copy")
    begin = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith((b"<?xml", b"<!--", b"<!DOCTYPE svg")) and b"<svg" in data[: 1 << 16]:
        begin = b"<svg"
    for name, (at, beginnings) in UNREADABLE.items():
        if any((begin if name == "SVG" else data)[at : at + len(one)] == one for one in beginnings):
            raise ImageError("UNREADABLE_FORMAT", f"{name} images cannot be read", SAVE_AS)


def check_size(image: Image) -> None:
    """Raise ImageError where an image would take too much memory, before it is decoded."""
    width, height = image.size
    most = MAX_WEBP_PIXELS if image.format == "WEBP" else MAX_PIXELS
    if width < 1 or height < 1:
        raise ImageError("DAMAGED", "the image has no pixels", "take another copy")
    if width * height > most:
        told = f"the image has {width:,} × {height:,} pixels; {most // 1_000_000} million are the most"
        raise ImageError("TOO_MANY_PIXELS", told, "make it smaller")


def is_animated(image: Image) -> bool:
    """Whether there are frames or pages after the first. Counting all would read the whole file."""
    if image.format == "MPO":  # a JPEG of a phone: beside the picture it has a small one, or light and depth
        return False
    if image.format != "TIFF":
        return bool(getattr(image, "is_animated", False))
    try:
        image.seek(1)
    except EOFError:
        return False
    image.seek(0)
    return True


def as_rgb(image: Image) -> Image:
    """Decode to 8-bit RGB: transparent parts over white, of 16 bits the upper ones."""
    from PIL import Image as pillow

    if image.mode.startswith("I;16"):
        import numpy as np

        image = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ImageError("UNKNOWN_SAMPLES", "the image has 32 bits a sample, and no scale for them", SAVE_AS)
    if not image.has_transparency_data:
        return image.convert("RGB")
    rgba = image.convert("RGBA")
    white = pillow.new("RGB", rgba.size, "white")
    white.paste(rgba, mask=rgba.getchannel("A"))
    return white


def orientation(image: Image) -> tuple[Transpose | None, tuple[str, ...]]:
    """How the image is to be transposed to stand upright, if at all; a note where its EXIF cannot be read."""
    try:
        tag = image.getexif().get(ORIENTATION_TAG, 1)
        return turns().get(tag), ()
    except ERRORS_OF_PILLOW:
        return None, ("its EXIF cannot be read: it may lie on its side",)


def turns() -> dict[int, Transpose]:
    """Transpositions by the orientation of EXIF (CIPA DC-008, 4.6.4 A); 1 is upright."""
    from PIL.Image import Transpose

    names = ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
    return {number: Transpose[name] for number, name in enumerate(names, 2)}


def turns_with_swap() -> set[Transpose]:
    """Transpositions that make width of height."""
    return {turn for number, turn in turns().items() if number >= 5}
