"""Parts of a message in its record: `text` holds all of it, and `parts` give the range of each part in it.

Every version reads `text`. Only a message with more than one text has `parts`.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, assert_never

from localrun.base.content import CallPart, Content, FilePart, ImagePart, Part, ResultPart, TextPart, is_sha256, text_of

_MARK = re.compile(r"^\[file: (?P<name>[^\n]*)\]\n(?P<fence>`{3,})\n(?P<text>.*?)\n(?P=fence)(?:\n\n|\Z)", re.S | re.M)


def pack_parts(content: Content, text: str, role: str) -> list[dict[str, Any]]:
    """The `parts` of a record whose `text` is all of `content`; none where the text says it alone."""
    if content == content_without_parts(text, role):
        return []
    packed: list[dict[str, Any]] = []
    at = 0
    for part in content:
        length = len(text_of((part,)))
        packed.append(_pack(part, at, length))
        at += length + len("\n\n")
    return packed


def unpack_parts(text: str, parts: object) -> Content | None:
    """The content of a record with this `text` and these `parts`; None where this version cannot read them."""
    if not isinstance(parts, list) or not parts:
        return None
    unpacked = [_unpack(part, text) for part in parts]
    content = tuple(part for part in unpacked if part is not None)
    return content if len(content) == len(parts) and text_of(content) == text else None


def content_without_parts(text: str, role: str) -> Content:
    """The content of a record with a `text` only: earlier versions wrote files at its beginning."""
    return parts_in(text) if role == "user" else (TextPart(text),)


def parts_in(message: str) -> Content:
    """The files that a text begins with, and the rest of it."""
    files: list[Part] = []
    while match := _MARK.match(message):
        files.append(FilePart(match["name"], match["text"]))
        message = message[match.end() :]
    return (*files, TextPart(message))


def _pack(part: Part, at: int, length: int) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "span": [at, at + length]}
        case FilePart(name, text):
            return {"type": "file", "name": name, "span": _span_in_fence(part, text, at + length)}
        case ImagePart():
            return {"type": "image", **part.fields(), "span": [at, at + length]}
        case CallPart(arguments=text):
            return {"type": "call", **_fields(part, "arguments"), "span": _span_in_fence(part, text, at + length)}
        case ResultPart(text=text):
            return {"type": "result", **_fields(part, "text"), "span": _span_in_fence(part, text, at + length)}
    assert_never(part)


def _span_in_fence(part: Part, text: str, end: int) -> list[int]:
    """Range of `text` inside the fences at the end of a part as it is written."""
    end -= len(text_of((part,)).rpartition("\n")[2]) + 1  # before the closing fence
    return [end - len(text), end]


def _fields(part: CallPart | ResultPart, spelled: str) -> dict[str, Any]:
    """Fields of a part other than the one in the text; empty ones are left out."""
    values = {name: value for name, value in asdict(part).items() if name != spelled}
    return {name: value for name, value in values.items() if value or name in ("id", "name")}


def _unpack(part: object, text: str) -> Part | None:
    match part:
        case {"type": "text", "span": [int(start), int(end)]}:
            return TextPart(text[start:end])
        case {"type": "file", "name": str(name), "span": [int(start), int(end)]}:
            return FilePart(name, text[start:end])
        case {"type": "image", "span": [int(), int()], **more}:
            return image_part(more)
        case {"type": "call", "id": str(id), "name": str(name), "span": [int(start), int(end)], **more}:
            return _with_fields(CallPart(id, name, text[start:end]), more)
        case {"type": "result", "id": str(id), "name": str(name), "span": [int(start), int(end)], **more}:
            return _with_fields(ResultPart(id, name, text[start:end]), more)
    return None


def _with_fields(part: CallPart | ResultPart, record: Mapping[Any, Any]) -> Part | None:
    """The part with the fields of its record; None where one has the wrong type."""
    found = {field.name: record[field.name] for field in fields(part) if field.name in record}
    for name, value in found.items():
        usual = getattr(part, name)
        if not isinstance(value, int | float if isinstance(usual, float) else type(usual)):
            return None
    return replace(part, **found)


def image_part(record: Mapping[Any, Any]) -> ImagePart | None:
    """The image of a record; None where a field is missing or has the wrong type."""
    match [record.get(field.name, field.default) for field in fields(ImagePart)]:
        case [str(name), str(sha256), int(width), int(height), str(kind), int(most)]:
            is_one = is_sha256(sha256) and min(width, height, most) > 0
            return ImagePart(name, sha256, width, height, kind, most) if is_one else None
    return None
