"""Reading of an image file's bytes, within a limit."""

from hashlib import sha256
from pathlib import Path

from localrun.base.errors import ImageError
from localrun.base.request import RequestImage
from localrun.base.sanitize import clean
from localrun.base.small_file import TooBigError, read_small
from localrun.base.units import gib

MAX_FILE_BYTES = 128 << 20
SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"))


def is_image_name(name: str) -> bool:
    """Whether a file is an image by its name."""
    return Path(name).suffix.lower() in SUFFIXES


def read_image(path: Path) -> bytes:
    """The bytes of an image file. Raises ImageError."""
    name = clean(path.name, keep_newlines=False)
    try:
        return read_small(path, MAX_FILE_BYTES)
    except TooBigError:
        raise ImageError("FILE_TOO_LARGE", f"{name} has more than {gib(MAX_FILE_BYTES)}", "make it smaller") from None
    except OSError as error:
        what = f"{name} cannot be read: {error.strerror or error}"
        raise ImageError("UNREADABLE", what, "check the path and its permissions") from None


def bytes_of(image: RequestImage) -> bytes:
    """The bytes of an image's file. Raises ImageError where it is gone or has become another."""
    data = image.data or (read_image(image.path) if image.path is not None else b"")
    if sha256(data).hexdigest() != image.sha256:
        raise ImageError("CHANGED", "the image is not the one that was attached", "attach it again")
    return data
