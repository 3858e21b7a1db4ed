"""The branches of a chat as a list: every message that has other versions beside it."""

from collections.abc import Iterator

from localrun.chat.conversation import Chat
from localrun.chat.tree import Message

_SHOWN = 60  # characters


def versions(chat: Chat) -> Iterator[tuple[str, str]]:
    """Every message on or beside the branch that has others beside it: its id, and a line about it."""
    tree, number, turn = chat.tree, 0, 0
    path = [None, *(message.id for message in tree.path(tree.head))]
    for parent, shown in zip(path, [*path[1:], None], strict=True):
        beside = tree.children(parent)
        turn += bool(beside) and tree[beside[0]].role == "user"
        for version in beside if len(beside) > 1 else ():
            number += 1
            what = "you" if tree[version].role == "user" else "answer"
            yield version, f"{number:3} {'*' if version == shown else ' '} turn {turn}, {what}: {_start(tree[version])}"


def _start(message: Message) -> str:
    line = " ".join(message.text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
