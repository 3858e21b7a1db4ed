"""Draft of a running answer, written piece by piece, so that a crash of the program loses seconds of it only."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localrun.base.content import TextPart
from localrun.chat.file import JournalFile
from localrun.chat.records import as_time, pack
from localrun.chat.tree import ChatTree, Message


class Draft:
    """The draft of one answer. `id` is the id of the final answer, which replaces the pieces."""

    def __init__(self, file: JournalFile, parent: str) -> None:
        self.id = secrets.token_hex(6)
        self._file = file
        self._parent = parent
        self._text = self._thinking = 0  # characters written

    def write(self, text: str, thinking: str = "") -> None:
        """Append the new part of the answer so far. Not synced to disk: the whole answer will be."""
        more, thoughts = text[self._text :], thinking[self._thinking :]
        if more or thoughts:
            at = [self._text, self._thinking]
            fields = {"id": self.id, "parent": self._parent, "at": time.time(), "after": at}
            self._file.append(pack("piece", **fields, text=more, thinking=thoughts), durable=False)
            self._text, self._thinking = len(text), len(thinking)


def join(tree: ChatTree, fields: Mapping[str, Any]) -> Message | None:
    """The answer that this record extends by one piece.

    None where the answer is finished, its question is unknown, or the piece does not follow what is there.
    """
    draft, parent = fields.get("id"), fields.get("parent")
    if not isinstance(draft, str) or not isinstance(parent, str) or parent not in tree:
        return None
    if draft in tree:
        return _longer(tree[draft], fields)
    return _longer(Message(draft, parent, "assistant", (TextPart(""),), interrupted=True, unfinished=True), fields)


def _longer(known: Message, fields: Mapping[str, Any]) -> Message | None:
    text, thinking = fields.get("text"), fields.get("thinking")
    if not known.unfinished or fields.get("after") != [len(known.text), len(known.thinking)]:
        return None
    if not isinstance(text, str) or not isinstance(thinking, str):
        return None
    created = known.created or as_time(fields.get("at"))
    content = (TextPart(known.text + text),)
    return replace(known, content=content, thinking=known.thinking + thinking, created=created)
