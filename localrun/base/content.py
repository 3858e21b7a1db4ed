"""Parts of a message: text, and text files that go along with it. Plain data that crosses threads and processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

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


Part = TextPart | FilePart
Content = tuple[Part, ...]


def as_content(text: str | Content) -> Content:
    """A plain text as the only part of a message; parts as they are."""
    return (TextPart(text),) if isinstance(text, str) else text


def text_of(content: Content) -> str:
    """A message as a model reads it: parts one below the other, files in fences below their names."""
    return "\n\n".join(map(_spelled, content))


def typed_text(content: Content) -> str:
    """The text of a message, without its files."""
    return "\n\n".join(part.text for part in content if isinstance(part, TextPart))


def files_in(content: Content) -> list[FilePart]:
    """The files, in their order."""
    return [part for part in content if isinstance(part, FilePart)]


def as_message_content(content: Content) -> str | list[dict[str, str]]:
    """`content` of a message in the OpenAI shape: a text, or a list of parts where there are files."""
    return [_as_dict(part) for part in content] if files_in(content) else text_of(content)


def parts_of(content: object) -> list[Any]:
    """`content` of a message in the OpenAI shape as a list of parts."""
    return content if isinstance(content, list) else [_as_dict(TextPart(str(content or "")))]


def with_files_as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the OpenAI shape, its files written into the text; parts without a file stay a list."""
    parts = message.get("content")
    if not isinstance(parts, list) or not any(_is_file(part) for part in parts):
        return dict(message)
    return {**message, "content": text_of(tuple(_from_dict(part) for part in parts))}


def _spelled(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case FilePart(name, text):
            longest = max((len(run) for run in re.findall("`+", text)), default=0)
            fence, line = "`" * max(3, longest + 1), name.replace("\n", " ")
            return f"[file: {line}]\n{fence}\n{text}\n{fence}"
    assert_never(part)


def _as_dict(part: Part) -> dict[str, str]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case FilePart(name, text):
            return {"type": "file", "name": name, "text": text}
    assert_never(part)


def _from_dict(part: Mapping[str, Any]) -> Part:
    text = str(part.get("text") or "")
    return FilePart(str(part["name"]), text) if _is_file(part) else TextPart(text)


def _is_file(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "file" and "name" in part
