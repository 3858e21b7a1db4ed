"""Image files that go along with a message: looked at without decoding a pixel, and kept for later turns."""

import os
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from localrun.base.content import ImagePart, is_sha256
from localrun.base.errors import ImageError, StorageError
from localrun.base.files import make_private, write_whole
from localrun.base.image_file import bytes_of, read_image
from localrun.base.request import RequestImage
from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.chat.file import read_file

IMAGES = "images"  # a folder beside the chats
_NAMED = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')  # in records of messages and drafts, whose texts escape quotes
_UNSENT_SECONDS = 24 * 3600  # for which an image that nothing names yet is kept
_MOST_IN_MEMORY = 256 << 20  # bytes of all images where nothing is kept on disk


class ImageShelf:
    """The bytes of images by their sha256: in files of a folder, or without one in memory."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, bytes] = {}

    def attach(self, path: Path) -> ImagePart:
        """Keep an image file. Raises ImageError, or StorageError where it cannot be written."""
        data = read_image(path)
        part = image_part(path.name, data)
        if self.folder is None:
            if sum(map(len, self._held.values())) + len(data) > _MOST_IN_MEMORY:
                told = f"the images of a chat that is not kept may have {gib(_MOST_IN_MEMORY)}"
                raise ImageError("FILE_TOO_LARGE", told, "make them smaller, or begin a new chat")
            self._held[part.sha256] = data
        else:
            _write(self.folder, part.sha256, data)
        return part

    def find(self, part: ImagePart) -> RequestImage | None:
        """The image for a request; None where its bytes are gone."""
        if (data := self._held.get(part.sha256)) is not None:
            return RequestImage.of(part, data=data)
        if self.folder is None or not is_sha256(part.sha256):
            return None
        path = (self.folder / part.sha256).absolute()
        is_there = path.is_file() and not path.is_symlink()
        return RequestImage.of(part, path) if is_there else None

    def data(self, part: ImagePart) -> bytes:
        """The bytes of an image. Raises ImageError where they are gone or have changed."""
        image = self.find(part)
        if image is None:
            raise ImageError("GONE", "the copy of the image is gone", "attach it again")
        return bytes_of(image)


def image_part(name: str, data: bytes) -> ImagePart:
    """The part of a message for an image file. Raises ImageError for what cannot be seen."""
    from localrun.images.open import image_size

    width, height = image_size(data)
    media_type = guess_type(name)[0] or ""
    return ImagePart(clean(name, keep_newlines=False), sha256(data).hexdigest(), width, height, media_type)


def seen_image(given: Path | bytes) -> tuple[ImagePart, RequestImage]:
    """An image, by its file or the bytes of one, as a part of a message and for the request. Raises ImageError."""
    if isinstance(given, bytes):
        part = image_part("image", given)
        return part, RequestImage.of(part, data=given)
    part = image_part(given.name, read_image(given))
    return part, RequestImage.of(part, given.absolute())


def erase_images(chats: Path, erased: Path) -> None:
    """Remove the images that a chat alone names, and those that nothing came to name. Raises OSError."""
    folder = chats / IMAGES
    if not folder.is_dir():
        return
    own = set(_named_in(erased)) if erased.is_file() else set()
    others = [*chats.glob("*.jsonl"), *chats.glob("draft-*.json")]
    named = {name for file in others if file != erased for name in _named_in(file)}
    oldest = time.time() - _UNSENT_SECONDS
    for path in folder.iterdir():
        if is_sha256(path.name) and path.name not in named and (path.name in own or path.stat().st_mtime < oldest):
            path.unlink(missing_ok=True)


def _named_in(path: Path) -> Iterator[str]:
    return (found.decode() for found in _NAMED.findall(read_file(path)))


def _write(folder: Path, name: str, data: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_private(folder)
        path = folder / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size == len(data):
            os.utime(path)  # it is wanted again, and stays for a day even if it is not sent
        else:
            write_whole(path, data)
    except OSError as error:
        what = f"the image cannot be kept in {folder}: {error.strerror or error}"
        raise StorageError(what, "check the folder's permissions and the free space") from None
