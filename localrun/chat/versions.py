"""Versions of messages: the branches of a chat as a list, and the headings of compared versions."""

from collections.abc import Iterator

from localrun.base.errors import UsageError
from localrun.base.units import tps
from localrun.chat.conversation import Chat
from localrun.chat.tree import Message
from localrun.hub.catalogue import shown_name

_SHOWN = 60  # characters


def versions(chat: Chat) -> Iterator[tuple[str, str]]:
    """Every message beside the branch or on it that has other versions: its id, and a line about it."""
    tree, number, turn = chat.tree, 0, 0
    path = [None, *(message.id for message in tree.path(tree.head))]
    for parent, shown in zip(path, [*path[1:], None], strict=True):
        beside = tree.children(parent)
        turn += bool(beside) and tree[beside[0]].role == "user"
        for version in beside if len(beside) > 1 else ():
            number += 1
            what = "you" if tree[version].role == "user" else "answer"
            yield version, f"{number:3} {'*' if version == shown else ' '} turn {turn}, {what}: {_start(tree[version])}"


def compared(chat: Chat) -> tuple[list[Message], int]:
    """The versions of the last message that has several, oldest first, and the index of the selected one.

    Raises UsageError.
    """
    tree = chat.tree
    for message in reversed(tree.path(tree.head)):
        ids = tree.siblings(message.id)
        if len(ids) > 1:
            return [tree[one] for one in ids], ids.index(message.id)
    raise UsageError("there is one version of each message", "/retry answers again, and /edit makes another")


def version_title(message: Message, number: int, n: int) -> str:
    """Heading of a version: its number, model, settings and figures."""
    stats = message.stats
    parts = [f"{number}/{n}", f"{shown_name(stats.get('model') or '')} {stats.get('precision') or ''}".strip()]
    if (temperature := stats.get("temperature")) is not None:
        parts.append(f"temperature {temperature:g}")
    if tokens := stats.get("completion_tokens"):
        parts.append(f"{tokens:,} tokens")
    if rate := stats.get("decode_tps"):
        parts.append(tps(float(rate)))
    return " · ".join(part for part in parts if part)


def chosen(number: str, n: int, what: str, command: str) -> int:
    """The index for a number from 1 to `n`. Raises UsageError."""
    if not number.isdecimal() or not 1 <= int(number[:9]) <= n:
        raise UsageError(f"there is no {what} {number}", f"{command} shows them")
    return int(number[:9]) - 1


def _start(message: Message) -> str:
    line = " ".join(message.text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
