"""Export of a chat: Markdown to read, JSON to process."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from localrun.base.content import Content, ImagePart, as_message_content, text_of, with_files_as_text
from localrun.base.errors import StorageError, UsageError
from localrun.base.sanitize import clean
from localrun.chat.conversation import Chat
from localrun.chat.exported_images import images_beside
from localrun.chat.requests import exported_messages
from localrun.chat.tree import Message

Images = Mapping[str, str]  # files of images by their sha256, from the folder of the export
NO_IMAGES: Images = MappingProxyType({})
_NAMES = {"system": "System", "user": "You", "assistant": "Model"}


def write_export(chat: Chat, path: Path, as_json: bool, keep_metadata: bool = False) -> None:
    """Write a new file, and beside it a folder of its images, completely or not at all.

    `keep_metadata`: of images, such as where a photo was taken. Raises UsageError, or StorageError on a full disk.
    """
    try:
        file = path.open("x", encoding="utf-8", errors="replace")
    except FileExistsError:
        raise UsageError(f"{path} exists already", "choose another name") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be written: {error}", "choose another folder") from None
    try:
        with file, images_beside(chat, path, keep_metadata) as images:
            # Somebody will look at it in a terminal.
            file.write(to_json(chat, images) if as_json else clean(to_markdown(chat, images)))
            file.flush()
        written = chat.tree.messages() if as_json else chat.tree.path(chat.tree.head)
        chat.exported.update(message.id for message in written)
    except OSError as error:
        path.unlink()
        hint = "free some space, or choose another place"
        raise StorageError(f"{path} cannot be written: {error.strerror}", hint) from None
    except UsageError:
        path.unlink()
        raise


def to_markdown(chat: Chat, images: Images = NO_IMAGES) -> str:
    """The selected branch as Markdown. Thinking is quoted, and `images` are shown."""
    model = f", {chat.model}" if chat.model else ""
    parts = [f"# {chat.title or 'A chat'}", f"{iso_date(chat.created)}{model}"]
    if chat.system:
        parts += ["## System", chat.system]
    for message in chat.tree.path(chat.tree.head):
        parts.append(f"## {_NAMES.get(message.role, message.role)}")
        if message.thinking:
            parts.append("\n".join(f"> {line}".rstrip() for line in message.thinking.strip().splitlines()))
        parts.append(_written(message.content, images).strip() + ("\n\n*(stopped)*" if message.interrupted else ""))
    return "\n\n".join(part for part in parts if part) + "\n"


def _written(content: Content, images: Images) -> str:
    """A message as it is read, images by their names and sizes."""
    return "\n\n".join(_shown(part, images) if isinstance(part, ImagePart) else text_of((part,)) for part in content)


def _shown(part: ImagePart, images: Images) -> str:
    file = images.get(part.sha256)
    return f"[image: {part.chip}]" if file is None else f"![{_in_brackets(part.chip)}](<{file}>)"


def _in_brackets(text: str) -> str:
    """A text that ends no brackets of Markdown."""
    return "".join(f"\\{sign}" if sign in "[]\\" else sign for sign in text)


def to_json(chat: Chat, images: Images = NO_IMAGES) -> str:
    """The chat as one object: `messages` is the selected branch in the OpenAI format, `tree` all branches."""
    return json.dumps(as_data(chat, images), ensure_ascii=False, indent=2) + "\n"


def as_data(chat: Chat, images: Images = NO_IMAGES) -> dict[str, Any]:
    """The data that `to_json` writes; `images` have the files of those that are written beside it."""
    messages = exported_messages(chat.tree.path(chat.tree.head), chat.system)
    return {
        "id": chat.id,
        "title": chat.title,
        "model": chat.model,
        "created": iso_date(chat.created),
        "messages": [with_files_as_text(message) for message in messages],
        "head": chat.tree.head,
        "tree": [_node(message, images) for message in chat.tree.messages()],
    }


def _node(message: Message, images: Images) -> dict[str, Any]:
    parts = as_message_content(message.content)
    if isinstance(parts, list):
        files = [images.get(part.get("sha256", "")) for part in parts]
        parts = [part if file is None else {**part, "file": file} for part, file in zip(parts, files, strict=True)]
    return {
        **message.extra,
        "id": message.id,
        "parent": message.parent,
        "role": message.role,
        "content": message.text,
        **({"parts": parts} if isinstance(parts, list) else {}),
        "thinking": message.thinking,
        "created": iso_date(message.created),
        "interrupted": message.interrupted,
        "stats": dict(message.stats),
    }


def iso_date(at: float) -> str:
    """A Unix time in ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
