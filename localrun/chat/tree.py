"""A conversation as a tree of messages: every edit and every second answer is a branch, and nothing is replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from localrun.base.content import Content, TextPart, text_of
from localrun.base.dataclass import dataclass

LOST_TEXT = "[this message is damaged and could not be read]"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `parent` is None for the first of a conversation; `role` is system, user or assistant.

    `content` are its parts: an answer is one text, a message of the user may have files before the text. For an answer,
    `ids` are token ids of prompt and answer as the engine had them, without the first `kept`, which are those of the
    answer before it on the same branch. `stats` are figures of the answer, plain JSON. `extra` are fields of its record
    that this version does not know; a copy of the message has them, too.
    """

    id: str
    parent: str | None
    role: str
    content: Content
    thinking: str = ""
    created: float = 0.0  # Unix time
    ids: tuple[int, ...] = ()
    kept: int = 0
    stats: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False  # the answer was stopped, or its engine died
    lost: bool = False  # its record is damaged: this takes its place, so that later messages are still shown
    unfinished: bool = False  # the program ended, or still writes it: the whole answer takes its place when it comes
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The message as a model reads it, with files."""
        return text_of(self.content)


class ChatTree:
    """Messages by id, with one selected branch."""

    def __init__(self) -> None:
        self._head: str | None = None
        self._goes_on = False  # the branch, to what follows its head; found out when somebody asks for that
        self._messages: dict[str, Message] = {}
        self._children: dict[str | None, list[str]] = {}
        self._shown: dict[str, None] = {}  # ids of messages that branches ended at, the last one last
        self._chosen: dict[str | None, str] | None = None  # see _choices; None: find them again

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def head(self) -> str | None:
        """The last message of the selected branch; None where that branch is empty."""
        if self._goes_on and self._head is not None:
            self.select(self.leaf_below(self._head))
        return self._head

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __getitem__(self, message_id: str) -> Message:
        return self._messages[message_id]

    def add(self, message: Message) -> None:
        """Add a message and select it.

        An existing id is only selected, unless that message was lost or unfinished: then it is replaced, and the branch
        continues to what follows it.
        """
        known = self._messages.get(message.id)
        gives_way = known is not None and (known.lost or known.unfinished)
        if known is None:
            self._children.setdefault(message.parent, []).append(message.id)
            self._messages[message.id] = message
        elif gives_way:
            self._replace(known, message)
        self.select(message.id)
        self._goes_on = gives_way

    def add_reply(self, message: Message, grandparent: object) -> None:
        """Add a message whose parent may be lost; a placeholder stands for a lost parent.

        The placeholder follows `grandparent` if that is the id of a message or None, else the place of a placeholder
        for the message itself, else the end of the selected branch.
        """
        lost = message.parent
        if lost is not None and lost not in self:
            role = "assistant" if message.role == "user" else "user"
            known = grandparent is None or (isinstance(grandparent, str) and grandparent in self)
            stood_in = self._messages.get(message.id)
            guess = stood_in.parent if stood_in else self.head
            above = cast(str | None, grandparent) if known else guess
            self.add(Message(lost, above, role, (TextPart(LOST_TEXT),), created=message.created, lost=True))
        self.add(message)

    def _replace(self, known: Message, message: Message) -> None:
        """Replace a placeholder by its message, with everything that follows, under the message's own parent.

        Where that parent was placed below it, because a lost message was guessed to be there, the guess moves. Where
        nothing is lost, parents form a cycle, and the message stays where it was guessed to be.
        """
        above = self.path(message.parent)
        ids = [one.id for one in above]
        if known.id in ids:
            guessed = [one for one in above[ids.index(known.id) + 1 :] if one.lost]
            if not guessed:
                message = replace(message, parent=known.parent)
            else:
                self._move(replace(guessed[-1], parent=known.parent))
        self._move(message)

    def _move(self, message: Message) -> None:
        """Move a message from its present parent to that of `message`."""
        before = self._messages[message.id].parent
        self._messages[message.id] = message
        if before != message.parent:
            self._children[before].remove(message.id)
            self._children.setdefault(message.parent, []).append(message.id)
            self._chosen = None

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
        """Make the selected branch end at this message; None empties it."""
        self._head, self._goes_on = message_id, False
        if message_id is not None and message_id in self:
            self._shown.pop(message_id, None)
            self._shown[message_id] = None
            self._chosen = None

    def leaf_below(self, message_id: str) -> str:
        """The end of the branch last shown through this message."""
        choices = self._choices()
        while replies := self._children.get(message_id):
            message_id = choices.get(message_id, replies[-1])
        return message_id

    def _choices(self) -> dict[str | None, str]:
        """For each message, the reply that the branch last shown went through.

        From the branch shown last to the first: where an earlier one meets a later one, everything above is chosen
        already. So each message is visited once, not once per branch.
        """
        if self._chosen is None:
            self._chosen = {}
            for leaf in reversed(self._shown):
                one = self._messages.get(leaf)
                while one is not None and one.parent not in self._chosen:
                    self._chosen[one.parent] = one.id
                    one = self._messages.get(one.parent) if one.parent is not None else None
        return self._chosen


def token_ids(path: Sequence[Message]) -> tuple[tuple[int, ...], str]:
    """Token ids up to the last answer of a branch, and the id of the message that its prompt began with.

    The ids are empty where those of one answer are unknown; the message id where no turns were dropped.
    """
    known: list[int] = []
    begins = ""
    for message in path:
        if message.role == "assistant":
            whole = message.kept <= len(known)
            known[message.kept :] = message.ids
            begins = message.stats.get("horizon") or ""
            if not whole or not message.ids:
                known.clear()
    return tuple(known), begins


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix."""
    if b[: len(a)] == a:  # as nearly always, and quickly told
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
