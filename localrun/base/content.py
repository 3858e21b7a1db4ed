"""Parts of a message: text, files and images that go along with it, calls of tools and their results.

Plain data that crosses threads and processes.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any, assert_never

from localrun.base.dataclass import dataclass
from localrun.base.image_size import IMAGE_ROWS, ImageKey, size_name
from localrun.base.sanitize import clean
from localrun.base.units import gib


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text that somebody wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class FilePart:
    """A text file, or the text of a PDF."""

    name: str
    text: str

    @property
    def chip(self) -> str:
        """Name and size, as a face shows them."""
        size = len(self.text.encode("utf-8", "replace"))
        return f"{clean(self.name, keep_newlines=False)} {gib(size)}"


@dataclass(frozen=True, slots=True)
class CallPart:
    """A call of a tool within an answer. `arguments` are JSON as text, as far as the model wrote them; `server` is
    empty for a tool that is built in. `thought_end`: characters of the message's thinking that came before it."""

    id: str
    name: str
    arguments: str
    server: str = ""
    thought_end: int = 0


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The result of the call with this id. `bytes` are those of all of it, of which `cut` are not in `text`."""

    id: str
    name: str
    text: str
    is_error: bool = False
    seconds: float = 0.0
    bytes: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image. Its bytes are kept elsewhere, by their sha256 (hex); the size is in pixels.

    A model makes at most `most_rows` tokens of it.
    """

    name: str
    sha256: str
    width: int
    height: int
    media_type: str = ""
    most_rows: int = IMAGE_ROWS

    @property
    def key(self) -> ImageKey:
        """The key of the image in a request."""
        return self.sha256, self.most_rows

    @property
    def chip(self) -> str:
        """Name and size, as a face shows them."""
        size = "" if self.most_rows == IMAGE_ROWS else f", {size_name(self.most_rows)}"
        return f"{clean(self.name, keep_newlines=False)} {self.width:,} × {self.height:,}{size}"

    def fields(self) -> dict[str, Any]:
        """The fields as plain data; `most_rows` where it is not the usual one."""
        return {name: value for name, value in asdict(self).items() if name != "most_rows" or value != IMAGE_ROWS}


def is_sha256(text: str) -> bool:
    """Whether a text is a hash as names of images are, and so is safe as the name of a file."""
    return re.fullmatch("[0-9a-f]{64}", text) is not None


Attachment = FilePart | ImagePart
Part = TextPart | Attachment | CallPart | ResultPart
Content = tuple[Part, ...]


def as_content(text: str | Content) -> Content:
    """A plain text as the only part of a message; parts as they are."""
    return (TextPart(text),) if isinstance(text, str) else text


def text_of(content: Content) -> str:
    """A message as a model reads it: parts one below the other, files in fences below their names."""
    return "\n\n".join(map(_spelled, content))


def typed_text(content: Content) -> str:
    """The text of a message, without its files, images, calls and results."""
    return "\n\n".join(part.text for part in content if isinstance(part, TextPart))


def has_calls(content: Content) -> bool:
    """Whether tools were called in it."""
    return any(isinstance(part, CallPart) for part in content)


def files_in(content: Content) -> list[FilePart]:
    """The files, in their order."""
    return [part for part in content if isinstance(part, FilePart)]


def attachments_in(content: Content) -> list[Attachment]:
    """The files and images, in their order."""
    return [part for part in content if isinstance(part, Attachment)]


def images_in(content: Content) -> list[ImagePart]:
    """The images, in their order."""
    return [part for part in content if isinstance(part, ImagePart)]


def as_message_content(content: Content) -> str | list[dict[str, Any]]:
    """`content` of a message in the OpenAI shape: a text, or a list of parts where there are files or images."""
    return [_as_dict(part) for part in content] if files_in(content) or images_in(content) else text_of(content)


def parts_of(content: object) -> list[Any]:
    """`content` of a message in the OpenAI shape as a list of parts."""
    return content if isinstance(content, list) else [_as_dict(TextPart(str(content or "")))]


def with_files_as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the OpenAI shape, its files written into the text; parts without a file stay a list.

    Where there are images, too, every text between them is one part.
    """
    parts = message.get("content")
    if not isinstance(parts, list) or not any(_is_file(part) for part in parts):
        return dict(message)
    told: list[Any] = []
    for is_image, run in [(is_image, list(run)) for is_image, run in groupby(parts, is_image_part)]:
        told += run if is_image else [_as_dict(TextPart(text_of(tuple(map(_from_dict, run)))))]
    return {**message, "content": told if len(told) > 1 or is_image_part(told[0]) else told[0]["text"]}


def is_image_part(part: object) -> bool:
    """Whether this is an image in a list of parts in the OpenAI shape."""
    return isinstance(part, Mapping) and part.get("type") == "image"


def _spelled(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case FilePart(name, text):
            return _fenced("file", name, text)
        case ImagePart(name):
            return f"[image: {name}]".replace("\n", " ")
        case CallPart(name=name, arguments=arguments):
            return _fenced("call", name, arguments)
        case ResultPart(name=name, text=text):
            return _fenced("result", name, text)
    assert_never(part)


def _fenced(kind: str, name: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence, line = "`" * max(3, longest + 1), name.replace("\n", " ")
    return f"[{kind}: {line}]\n{fence}\n{text}\n{fence}"


def _as_dict(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case FilePart(name, text):
            return {"type": "file", "name": name, "text": text}
        case ImagePart():
            return {"type": "image", **part.fields()}
        case CallPart() | ResultPart():
            return {"type": "text", "text": _spelled(part)}
    assert_never(part)


def _from_dict(part: Mapping[str, Any]) -> Part:
    text = str(part.get("text") or "")
    return FilePart(str(part["name"]), text) if _is_file(part) else TextPart(text)


def _is_file(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "file" and "name" in part
