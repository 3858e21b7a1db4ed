"""Messages of a chat as engines get them."""

from collections.abc import Sequence

from localrun.base.content import as_message_content, parts_of
from localrun.base.request import RequestMessage
from localrun.chat.tree import Message

_ROLES = ("system", "user", "assistant")


def exported_messages(messages: Sequence[Message], system: str = "") -> list[RequestMessage]:
    """Messages in the OpenAI shape. A stand-in for a lost one is left out where turns would no longer take turns."""
    shown = [message for message in messages if message.role in _ROLES]
    roles_before = [None, *(message.role for message in shown)]
    turns = [m for before, m in zip(roles_before, shown, strict=False) if not (m.lost and m.role == before)]
    first = [{"role": "system", "content": system}] if system else []
    return [*first, *map(_request_message, turns)]


def request_messages(messages: Sequence[Message], system: str = "") -> list[RequestMessage]:
    """The same for an engine. An answer without a thought says so: its text is all answer, whatever tags it spells."""
    shown = exported_messages(messages, system)
    return [{"reasoning_content": "", **message} if message["role"] == "assistant" else message for message in shown]


def _request_message(message: Message) -> RequestMessage:
    thought = {"reasoning_content": message.thinking} if message.thinking else {}
    return {"role": message.role, "content": as_message_content(message.content), **thought}


def in_turn(messages: Sequence[RequestMessage]) -> list[RequestMessage]:
    """Unanswered messages of the user are joined to the next, since templates want turns that alternate."""
    merged: list[RequestMessage] = []
    for message in messages:
        if merged and message["role"] == "user" == merged[-1]["role"]:
            merged[-1] = {**message, "content": _joined(merged[-1]["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def _joined(first: object, second: object) -> object:
    """The content of two messages as that of one."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*parts_of(first), *parts_of(second)]
