"""Images in the messages for a server: as data without metadata, in the shape of the OpenAI protocol."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from localrun.base.content import is_image_part
from localrun.base.image_file import bytes_of
from localrun.base.request import RequestImage


def with_image_data(parts: Sequence[Mapping[str, Any]], images: Sequence[RequestImage]) -> list[dict[str, Any]]:
    """Parts of a message with the bytes of its images in them. Raises ImageError where a file is gone or changed."""
    from localrun.images.without_metadata import without_metadata

    known = {image.sha256: image for image in images}
    told: list[dict[str, Any]] = []
    for part in parts:
        image = known.get(part.get("sha256", "")) if is_image_part(part) else None
        if image is None:
            told.append(dict(part))
        else:
            bare, suffix = without_metadata(bytes_of(image))
            kind = "jpeg" if suffix == ".jpg" else suffix[1:]
            url = f"data:image/{kind};base64,{b64encode(bare).decode('ascii')}"
            told.append({"type": "image_url", "image_url": {"url": url}})
    return told
