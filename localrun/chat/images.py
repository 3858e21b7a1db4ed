"""Image files that go along with a message: looked at without decoding a pixel."""

from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from localrun.base.content import ImagePart
from localrun.base.image_file import read_image
from localrun.base.request import RequestImage
from localrun.base.sanitize import clean


def image_part(name: str, data: bytes) -> ImagePart:
    """The part of a message for an image file. Raises ImageError for what cannot be seen."""
    from localrun.images.open import image_size

    width, height = image_size(data)
    media_type = guess_type(name)[0] or ""
    return ImagePart(clean(name, keep_newlines=False), sha256(data).hexdigest(), width, height, media_type)


def attach_image(path: Path) -> tuple[ImagePart, RequestImage]:
    """An image file as a part of a message, and for the request. Raises ImageError."""
    part = image_part(path.name, read_image(path))
    return part, RequestImage(part.sha256, part.width, part.height, path.absolute())
