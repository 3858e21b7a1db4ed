"""A conversation as a tree of messages: every edit and every second answer is a branch, and nothing is replaced."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

LOST_TEXT = "[this message is damaged and could not be read]"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `parent` is None for the first of a conversation; `role` is system, user or assistant.

    For an answer, `ids` are token ids of prompt and answer as the engine had them, without the first `kept`, which
    are those of the answer before it on the same branch. `stats` are figures of the answer, plain JSON.
    """

    id: str
    parent: str | None
    role: str
    text: str
    thinking: str = ""
    created: float = 0.0  # Unix time
    ids: tuple[int, ...] = ()
    kept: int = 0
    stats: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False  # the answer was stopped, or its engine died
    lost: bool = False  # its record is damaged: this stands in its place, so that what came after it is still shown
    unfinished: bool = False  # the program ended, or still writes it: the whole answer takes its place when it comes


class ChatTree:
    """Messages by id. `head` is the last message of the branch that is shown; None where that branch is empty."""

    def __init__(self) -> None:
        self.head: str | None = None
        self._messages: dict[str, Message] = {}
        self._children: dict[str | None, list[str]] = {}
        self._chosen: dict[str | None, str] = {}  # which child the branch last shown went through

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __getitem__(self, message_id: str) -> Message:
        return self._messages[message_id]

    def add(self, message: Message) -> None:
        """Put in a message and select it. One whose id is there already is only selected, unless that one was lost or
        unfinished."""
        known = self._messages.get(message.id)
        if known is None:
            self._children.setdefault(message.parent, []).append(message.id)
        if known is None or ((known.lost or known.unfinished) and message.parent == known.parent):
            self._messages[message.id] = message
        if message.parent == self.head:  # the path to the head is chosen already
            self._chosen[self.head] = self.head = message.id
        else:
            self.select(message.id)

    def add_reply(self, message: Message, grandparent: object) -> None:
        """Put in a message whose parent may be lost: something stands in for that, after `grandparent` if that is the
        id of a message or None, else at the end of the selected branch."""
        lost = message.parent
        if lost is not None and lost not in self:
            role = "assistant" if message.role == "user" else "user"
            known = grandparent is None or (isinstance(grandparent, str) and grandparent in self)
            above = cast(str | None, grandparent) if known else self.head
            self.add(Message(lost, above, role, LOST_TEXT, created=message.created, lost=True))
        self.add(message)

    def messages(self) -> list[Message]:
        """All messages of all branches, oldest first."""
        return list(self._messages.values())

    def path(self, leaf: str | None) -> list[Message]:
        """The messages from the first one to `leaf`; none for None."""
        path = []
        while leaf is not None and leaf in self._messages:
            path.append(self._messages[leaf])
            leaf = path[-1].parent
        return path[::-1]

    def children(self, message_id: str | None) -> list[str]:
        """Ids of the replies to a message, oldest first; of the first messages for None."""
        return list(self._children.get(message_id, ()))

    def siblings(self, message_id: str) -> list[str]:
        """Ids of the versions of this message, itself included, oldest first."""
        return self.children(self._messages[message_id].parent)

    def select(self, message_id: str | None) -> None:
        """Make the branch end at this message; None empties it."""
        self.head = message_id
        for message in self.path(message_id):
            self._chosen[message.parent] = message.id

    def leaf_below(self, message_id: str) -> str:
        """The end of the branch last shown through this message."""
        while replies := self._children.get(message_id):
            message_id = self._chosen.get(message_id, replies[-1])
        return message_id
