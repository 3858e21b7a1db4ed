"""Images in the bodies of requests: their bytes as base64, never an address or a path.

A part of a message has its image with it until `with_images` puts those of all messages beside them.
"""

import re
from dataclasses import replace

from localrun.base.errors import ImageError
from localrun.base.image_size import ImageKey
from localrun.base.request import Json, Request, RequestImage, RequestMessage
from localrun.chat.images import seen_image
from localrun.server.refusal import Refusal
from localrun.server.request.json_body import Body

KINDS = ("image_url", "input_image", "image")  # types of parts: chat completions, Responses, Messages
MAX_IMAGES = 64  # of a request
_DATA_URL = re.compile(r"data:[\w.+/-]*(;[\w.=+-]+)*;base64,")
_IMAGE = "request_image"  # the key of an image, next to what a message says of it


def is_image(part: Body) -> bool:
    """Whether a part of a message is an image."""
    return part.values.get("type") in KINDS


def read_image_part(part: Body) -> Json:
    """An image of any protocol as a part of a message. Raises Refusal, naming the field."""
    match part.text("type"):
        case "image_url":
            is_plain = isinstance(part.values.get("image_url"), str)
            where = part if is_plain else part.inner("image_url")
            return _of_url(where, "image_url" if is_plain else "url")
        case "input_image":
            if part.values.get("file_id"):
                raise part.wrong("file_id", "localrun keeps no files: send the image as a data URL")
            return _of_url(part, "image_url")
        case _:
            source = part.inner("source")
            source.choice("type", ("base64",), "")
            return read_image(source, "data", source.text("data"))


def read_image(where: Body, field: str, encoded: str) -> Json:
    """The base64 of an image file as a part of a message. Raises Refusal, naming the field."""
    data = where.decoded(field, encoded, "base64 of an image file is needed")
    try:
        part, image = seen_image(data)
    except ImageError as error:
        raise where.wrong(field, f"{error.message}: {error.hint}") from None
    return {"type": "image", **part.fields(), _IMAGE: image}


def with_images(request: Request) -> Request:
    """The request with the bytes of its images beside its messages, each image once. Raises Refusal for too many."""
    images: dict[ImageKey, RequestImage] = {}
    messages = tuple(_without_bytes(message, images) for message in request.messages)
    if len(images) > MAX_IMAGES:
        raise Refusal(400, f"the messages have {len(images):,} images; {MAX_IMAGES} are the most", param="messages")
    return replace(request, messages=messages, images=tuple(images.values())) if images else request


def _of_url(where: Body, field: str) -> Json:
    url = where.text(field)
    head = _DATA_URL.match(url[:256])
    if head is None:
        raise where.wrong(field, "addresses are not fetched: send the image as data:image/png;base64,…")
    return read_image(where, field, url[head.end() :])


def _without_bytes(message: RequestMessage, images: dict[ImageKey, RequestImage]) -> RequestMessage:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for part in content:
        if (image := part.get(_IMAGE)) is not None:
            images[image.key] = image
        parts.append({name: value for name, value in part.items() if name != _IMAGE})
    return {**message, "content": parts}
