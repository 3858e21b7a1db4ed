"""The images of a chat as a model gets them, or the reason why it does not."""

from collections.abc import Sequence
from dataclasses import replace

from localrun.base.content import Content, ImagePart, Part, TextPart, images_in, text_of
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.events import ModelInfo
from localrun.base.request import RequestImage, RequestMessage
from localrun.chat.conversation import Chat
from localrun.chat.requests import in_turn, request_messages
from localrun.chat.tree import Message


@dataclass(frozen=True, slots=True)
class SeenChat:
    """Messages for a request, and their images; `gone` are those whose names alone are in the messages."""

    messages: tuple[RequestMessage, ...]
    images: tuple[RequestImage, ...]
    gone: tuple[ImagePart, ...]


def seen_chat(chat: Chat, messages: Sequence[Message], sees: bool = True) -> SeenChat:
    """Messages of a chat as a model gets them; one that does not see reads the names of images."""
    parts = {part: None for message in messages for part in images_in(message.content)}
    found = {part: chat.images.find(part) if sees else None for part in parts}
    gone = tuple(part for part, image in found.items() if image is None)
    told = [_without(message, gone) for message in messages]
    images = {image.key: image for image in found.values() if image is not None}
    return SeenChat(tuple(in_turn(request_messages(told, chat.system))), tuple(images.values()), gone)


def require_sight(info: ModelInfo | None, content: Content) -> None:
    """Raise UsageError where a message has images that the model does not see."""
    if info is not None and info.why_blind and images_in(content):
        raise UsageError(f"{info.name} sees no images", info.why_blind)


def blind_words(info: ModelInfo | None) -> str:
    """A sentence about a model that sees no images; empty for one that does, or that is not known."""
    return f"{info.name} sees no images: {info.why_blind}" if info is not None and info.why_blind else ""


def unseen_words(chat: Chat, leaf: str, info: ModelInfo) -> str:
    """A sentence about images of a branch that the model does not get; empty where it gets all."""
    gone = seen_chat(chat, chat.visible(leaf), sees=not info.why_blind).gone
    if not gone:
        return ""
    names = ", ".join(dict.fromkeys(part.name for part in gone[:5])) + (" and others" if len(gone) > 5 else "")
    if info.why_blind:
        return f"{info.name} sees no images: it gets the names only of {names}"
    return f"no longer on disk, so that the model gets the names only: {names}"


def _without(message: Message, gone: Sequence[ImagePart]) -> Message:
    """A message with the names of these images in their places."""
    if not any(part in gone for part in message.content):
        return message
    content: tuple[Part, ...] = tuple(TextPart(text_of((p,))) if p in gone else p for p in message.content)
    return replace(message, content=content)
