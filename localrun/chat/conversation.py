"""One conversation: its tree, its settings, and their file."""

import secrets
import time
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, cast, get_args

from localrun.base.content import Content, as_content, text_of
from localrun.base.errors import NotFoundError
from localrun.chat.draft import Draft, join
from localrun.chat.file import JournalFile
from localrun.chat.images import ImageShelf
from localrun.chat.record_parts import pack_parts, parts_in, unpack_parts
from localrun.chat.records import as_time, pack, pack_message, parse, unpack_message
from localrun.chat.summary import title_of
from localrun.chat.tree import ChatTree, Message, common_length, token_ids

VERSION = 1
_NO_SETTINGS = ("kind", "version", "created", "at", "deleted", "crc32")
Policy = Literal["stop", "drop", "roll"]
SettingValue = str | int | float | bool | list[str] | list[list[dict[str, Any]]] | None


class Chat:
    """A conversation, created and opened by a ChatStore.

    `problem` is a sentence for the user when something could not be stored; empty when all is on disk.
    """

    def __init__(self, chat_id: str, file: JournalFile, images: ImageShelf) -> None:
        self.id = chat_id
        self.images = images
        self.tree = ChatTree()
        self.created = 0.0  # Unix time; templates that print a date print this one
        self.updated = 0.0
        self.deleted = False
        self._file = file
        self._settings: dict[str, Any] = {}
        self._drafts: set[str] = set()  # ids of answers that are written by this object
        self.exported: set[str] = set()  # ids of messages that exports of this object have

    @property
    def title(self) -> str:
        """The given title, else the beginning of the first message."""
        return self._text("title") or next((title_of(m.text) for m in self.tree.messages() if m.role == "user"), "")

    @property
    def model(self) -> str:
        """The model that the chat began with, or last switched to."""
        return self._text("model")

    @property
    def system(self) -> str:
        return self._text("system")

    @property
    def preset(self) -> str:
        """Name of the sampling preset."""
        return self._text("preset")

    @property
    def own(self) -> Mapping[str, Any]:
        """Everything that was set for this chat, by name, as it is in the file: not checked."""
        return self._settings

    @property
    def pinned(self) -> bool:
        return self._settings.get("pinned") is True

    @property
    def folder(self) -> str:
        """The folder that the user put the chat into; empty for none."""
        return self._text("folder")

    @property
    def policy(self) -> Policy:
        """Policy at the end of the context: stop, drop the oldest turns, or roll the window."""
        value = self._text("policy")
        return cast(Policy, value) if value in get_args(Policy) else "stop"

    @property
    def waiting(self) -> tuple[Content, ...]:
        """Messages sent during an answer, until each becomes a message of the tree."""
        texts = self._settings.get("waiting")
        texts = [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else []
        parts = self._settings.get("waiting_parts")
        parts = parts if isinstance(parts, list) else []
        both = zip_longest(texts, parts[: len(texts)])
        return tuple(unpack_parts(text, of) or parts_in(text) for text, of in both if isinstance(text, str) and text)

    @property
    def horizon(self) -> str | None:
        """Id of the first message that the model still sees, after oldest turns were dropped."""
        return self._text("horizon") or None

    @property
    def kept(self) -> bool:
        """Whether the chat is, or will be, in a file."""
        return self._file.path is not None

    @property
    def has_grown(self) -> bool:
        """Whether another program wrote in it since it was read."""
        return self._file.has_grown

    @property
    def problem(self) -> str:
        return self._file.problem

    @property
    def is_exported(self) -> bool:
        """Whether exports have all that was said, on every branch: nothing waits, and no answer is under way."""
        return not self.waiting and self._drafts | {message.id for message in self.tree.messages()} <= self.exported

    @property
    def damaged(self) -> int:
        """Number of places in the file that could not be read."""
        return self._file.damaged

    def set(self, **settings: SettingValue) -> None:
        """Set title, system, policy, waiting, horizon, pinned, folder, or a name of chat_settings.py; None resets."""
        self._settings |= settings
        record = pack("set", at=time.time(), **settings)
        if self._file.exists:
            self._file.append(record)
        else:
            self._file.put_off(record)  # nothing was said yet: a chat without a message is not kept

    def wait(self, messages: Sequence[Content]) -> None:
        """Store messages that were sent during an answer."""
        texts = [text_of(content) for content in messages]
        parts = [pack_parts(content, text, "user") for content, text in zip(messages, texts, strict=True)]
        self.set(waiting=texts, waiting_parts=parts)

    def add_user(self, content: str | Content, parent: str | None = None) -> Message:
        """Add a message after `parent`, or at the end of the selected branch.

        It is on disk when this returns, unless `problem` says why not.
        """
        return self._add("user", as_content(content), self.tree.head if parent is None else parent)

    def add_answer(
        self,
        parent: str,
        content: str | Content,
        thinking: str = "",
        ids: tuple[int, ...] = (),
        stats: Mapping[str, Any] | None = None,
        interrupted: bool = False,
        draft: Draft | None = None,
    ) -> Message:
        """Add an answer to `parent`.

        `ids` are the token ids of its prompt and itself, as the engine had them; `draft` is the part of it that was
        stored while it was generated.
        """
        before = self.known_ids(parent)
        figures = _plain({**(stats or {}), **({"horizon": begins} if (begins := self._begins(parent)) else {})})
        kept = common_length(before, ids)
        more: dict[str, Any] = {"ids": tuple(ids[kept:]), "kept": kept} if ids[kept:] else {}
        more |= {"message_id": draft.id} if draft else {}
        more |= {"thinking": thinking, "stats": figures, "interrupted": interrupted}
        return self._add("assistant", as_content(content), parent, **more)

    def draft(self, parent: str) -> Draft:
        """Draft of an answer to `parent`, stored piece by piece."""
        draft = Draft(self._file, self._message(parent).id)
        self._drafts.add(draft.id)
        return draft

    def edit(self, message_id: str, content: str | Content) -> Message:
        """Add another version of a message beside it."""
        message = self._message(message_id)
        return self._add(message.role, as_content(content), message.parent)

    def select(self, message_id: str) -> None:
        """Select the branch through this message, to the end that was shown last."""
        self.rewind(self.tree.leaf_below(self._message(message_id).id))

    def rewind(self, message_id: str | None) -> None:
        """End the selected branch at this message, so that the next one follows it; None empties the branch."""
        self.tree.select(message_id)
        if self._file.exists:
            self._file.append(pack("select", at=time.time(), head=message_id), durable=False)

    def set_aside(self) -> str | None:
        """End the selected branch before questions without an answer; returns the id of the last of them."""
        path = self.tree.path(self.tree.head)
        while path and path[-1].role == "user":
            path.pop()
        end = path[-1].id if path else None
        asked = self.tree.head if end != self.tree.head else None
        if asked:
            self.rewind(end)
        return asked

    def visible(self, leaf: str | None = None) -> list[Message]:
        """The branch up to `leaf`, from the first message that the model still sees."""
        path = self.tree.path(leaf or self.tree.head)
        return path[next((i for i, message in enumerate(path) if message.id == self.horizon), 0) :]

    def known_ids(self, leaf: str | None = None) -> tuple[int, ...]:
        """Token ids up to the last answer before `leaf`, as the engine had them.

        Empty where they are unknown, or turns were dropped since.
        """
        ids, begins = token_ids(self.tree.path(leaf or self.tree.head))
        return ids if begins == self._begins(leaf) else ()

    def refresh(self) -> bool:
        """Read what other programs appended; the selected branch stays. Returns whether there was a message."""
        head, before = self.tree.head, len(self.tree)
        self.read()
        if head is not None:
            self.tree.select(head)
        return len(self.tree) > before

    def read(self) -> None:
        """Apply every record not read yet. Raises OSError."""
        for record in self._file.read_new():
            if (fields := parse(record)) is not None:
                self._apply(fields)

    def flush(self) -> None:
        """Try again to write what is not on disk."""
        self._file.flush()

    def begin(self, created: float, settings: Mapping[str, SettingValue]) -> None:
        """Make this a new chat. Its file is created with the first message."""
        self.created = self.updated = created
        self._settings = dict(settings)
        self._file.put_off(pack("chat", version=VERSION, created=created, **settings))

    def take_over(self, tree: ChatTree) -> None:
        """Write the messages of another chat into this new one."""
        records = []
        for message in tree.messages():
            self.tree.add(message)
            records.append(pack_message(message, None if message.parent is None else tree[message.parent].parent))
        self.updated = time.time()
        self.tree.select(tree.head)
        self._file.append(b"".join([*records, pack("select", at=self.updated, head=tree.head)]))

    def bury(self, deleted: bool) -> None:
        """Mark the chat as deleted, or undo that."""
        self.deleted = deleted
        self._file.append(pack("set", at=time.time(), deleted=deleted))

    def _add(self, role: str, content: Content, parent: str | None, message_id: str = "", **more: Any) -> Message:
        if parent is not None:
            self._message(parent)
        message = Message(message_id or secrets.token_hex(6), parent, role, content, created=time.time(), **more)
        self.tree.add(message)
        self.updated = message.created
        self._file.append(pack_message(message, None if parent is None else self.tree[parent].parent))
        return message

    def _begins(self, leaf: str | None) -> str:
        """Id of the message that a prompt for `leaf` begins with, where turns before it were dropped."""
        shown = self.visible(leaf)
        return shown[0].id if shown and shown[0].parent is not None else ""

    def _message(self, message_id: str) -> Message:
        if message_id not in self.tree:
            raise NotFoundError(f"there is no message {message_id} in this chat", "open the chat again")
        return self.tree[message_id]

    def _apply(self, fields: Mapping[str, Any]) -> None:
        """Apply one record; kinds and fields of newer versions are ignored."""
        at = as_time(fields.get("at", fields.get("created")))
        self.updated = max(self.updated, at)
        self.created = self.created or at
        head = fields.get("head")
        match fields["kind"]:
            case "chat" | "set":
                self._settings |= {key: value for key, value in fields.items() if key not in _NO_SETTINGS}
                if "deleted" in fields:
                    self.deleted = fields["deleted"] is True
            case "select" if head is None or (isinstance(head, str) and head in self.tree):
                self.tree.select(head)
            case "message" if (message := unpack_message(fields)) is not None:
                self.deleted = False  # another program went on with it
                self.tree.add_reply(message, fields.get("grandparent"))
            case "piece" if (half := join(self.tree, fields)) is not None and half.id not in self._drafts:
                self.tree.add(half)

    def _text(self, key: str) -> str:
        value = self._settings.get(key)
        return value if isinstance(value, str) else ""


def _plain(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Figures as JSON values, without NaN and infinity."""
    return {key: value for key, value in stats.items() if value == value and value not in (float("inf"), -float("inf"))}
