"""Display of a chat in plain chat: messages, branches and versions."""

from localrun.base.errors import UsageError
from localrun.chat.overflow import horizon_of
from localrun.chat.search import places, snippet
from localrun.chat.tree import Message
from localrun.chat.versions import chosen, compared, version_title, versions
from localrun.cli.console import note
from localrun.cli.line.chat import LineChat

_SHOWN_MESSAGES = 4


def show_messages(messages: list[Message], horizon: str | None) -> None:
    """Show a transcript as text."""
    for message in messages:
        if message.id == horizon:
            note("--- the model no longer sees what is above ---")
        note(f"{_who(message)}: {message.text.strip()}{' (stopped)' if message.interrupted else ''}")


def show_all(chat: LineChat, _: str) -> None:
    show_messages(chat.chat.tree.path(chat.chat.tree.head), _horizon(chat))


def show_end(chat: LineChat) -> None:
    """Show the last messages of the chat that was just opened."""
    messages = chat.chat.tree.path(chat.chat.tree.head)
    if len(messages) > _SHOWN_MESSAGES:
        note(f"({len(messages) - _SHOWN_MESSAGES} earlier messages: /show)")
    show_messages(messages[-_SHOWN_MESSAGES:], _horizon(chat))


def branch(chat: LineChat, number: str) -> None:
    """List the branches, or go to one."""
    found = list(versions(chat.chat))
    if not found:
        raise UsageError("this chat has no branches", "/edit and /retry make one")
    if not number:
        note("\n".join(line for _, line in found))
        note("/branch NUMBER goes there.")
        return
    _go_to(chat, found[chosen(number, len(found), "branch", "/branch")][0])


def compare(chat: LineChat, number: str) -> None:
    """Show the versions of the last message that has several, or choose one."""
    found, shown = compared(chat.chat)
    if number:
        _go_to(chat, found[chosen(number, len(found), "version", "/compare")].id)
        return
    for n, message in enumerate(found):
        note(f"--- {version_title(message, n + 1, len(found))}{' (current)' if n == shown else ''}")
        note(message.text.strip())
    note("/compare NUMBER chooses one.")


def find(chat: LineChat, words: str) -> None:
    """Show the messages of this branch that contain the words."""
    if not words:
        raise UsageError("/find needs words", "/find WORDS; /search looks in all chats")
    path = chat.chat.tree.path(chat.chat.tree.head)
    found = places(path, words)
    for number, message in enumerate(path, 1):
        if message.id in found:
            note(f"message {number} of {len(path)}, {_who(message)}: {snippet(message.text, words.split())}")
    note(f"({len(found)} found; /show shows the whole chat)" if found else "(nothing found)")


def _go_to(chat: LineChat, message_id: str) -> None:
    chat.chat.select(message_id)
    chat.unanswered = None
    show_end(chat)


def _horizon(chat: LineChat) -> str | None:
    return horizon_of(chat.chat, chat.client.info.ctx)


def _who(message: Message) -> str:
    return {"user": "You", "assistant": "Model"}.get(message.role, message.role)
