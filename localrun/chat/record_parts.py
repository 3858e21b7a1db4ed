"""The parts of a message in its record: `text` holds all of it, as every version reads it, and `parts` say where in it
each part stands. Only a message that is more than a text has them."""

import re
from typing import Any, assert_never

from localrun.base.content import Content, FilePart, Part, TextPart, text_of

_MARK = re.compile(r"^\[file: (?P<name>[^\n]*)\]\n(?P<fence>`{3,})\n(?P<text>.*?)\n(?P=fence)(?:\n\n|\Z)", re.S | re.M)


def pack_parts(content: Content, text: str, role: str) -> list[dict[str, Any]]:
    """`parts` of a record whose `text` is all of `content`; none where that says it alone."""
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
    """The content of a record with this `text` and these `parts`; None where they are not those of this version."""
    if not isinstance(parts, list) or not parts:
        return None
    unpacked = [_unpack(part, text) for part in parts]
    content = tuple(part for part in unpacked if part is not None)
    return content if len(content) == len(parts) and text_of(content) == text else None


def content_without_parts(text: str, role: str) -> Content:
    """The content of a record that has a `text` only: earlier versions wrote files at the beginning of it."""
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
            end = at + length - len(text_of((part,)).rpartition("\n")[2]) - 1  # before the closing fence
            return {"type": "file", "name": name, "span": [end - len(text), end]}
    assert_never(part)


def _unpack(part: object, text: str) -> Part | None:
    match part:
        case {"type": "text", "span": [int(start), int(end)]}:
            return TextPart(text[start:end])
        case {"type": "file", "name": str(name), "span": [int(start), int(end)]}:
            return FilePart(name, text[start:end])
    return None
