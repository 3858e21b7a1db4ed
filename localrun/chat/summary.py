"""Summaries of chats for lists, read without parsing their messages."""

import os
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.chat.file import read_file
from localrun.chat.records import as_time, parse, split

SUFFIX = ".jsonl"
KEPT_SECONDS = 30 * 24 * 3600  # that a deleted chat can still be brought back
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_TITLE_LENGTH = 60
_MARKS = re.compile(r"^\s*(?:#+ |> ?|`{3,}\S*\s*$)|`", re.MULTILINE)  # that say nothing in a title
_SENTENCE = re.compile(r".{15,}?[.?!…]+(?= )|.{6,}?[。？！]+")  # shorter ones, as Hello!, are no title of their own
_MESSAGE, _PIECE = b'{"kind":"message"', b'{"kind":"piece"'


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """One row of the list. Times are Unix times, `updated` when it was last written in, or deleted; `n_messages` counts
    all branches."""

    id: str
    title: str
    model: str
    created: float
    updated: float
    n_messages: int
    deleted: bool = False
    pinned: bool = False
    folder: str = ""

    @property
    def expired(self) -> bool:
        """Whether the chat was deleted too long ago to be restored."""
        return self.deleted and self.updated > 0 and time.time() - self.updated > KEPT_SECONDS


class Summaries:
    """Summaries of the chats in a folder; an unchanged file is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], ChatSummary]] = {}

    def read(self, folder: Path) -> dict[str, ChatSummary]:
        """Summaries by id, deleted ones included; none where the folder cannot be read."""
        found: dict[str, ChatSummary] = {}
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                chat_id = entry.name.removesuffix(SUFFIX)
                if entry.name.endswith(SUFFIX) and is_chat_id(chat_id):
                    with suppress(OSError):
                        found[chat_id] = self._of(entry, chat_id)
        return found

    def known(self, chat_id: str) -> ChatSummary | None:
        """The summary at the last reading of the folder."""
        known = self._known.get(chat_id)
        return known[1] if known else None

    def state(self, chat_id: str) -> tuple[int, int]:
        """Size and time of change in ns of a file when it was read."""
        return self._known[chat_id][0]

    def _of(self, entry: "os.DirEntry[str]", chat_id: str) -> ChatSummary:
        now = entry.stat()
        state = now.st_size, now.st_mtime_ns
        known = self._known.get(chat_id)
        if known is None or known[0] != state:
            known = self._known[chat_id] = state, summarise(chat_id, read_file(Path(entry.path)))
        summary = known[1]
        return summary if summary.updated else replace(summary, updated=now.st_mtime)


def is_chat_id(text: str) -> bool:
    """Whether `text` is a safe name for a chat's file: no path, nothing hidden."""
    return _ID.fullmatch(text) is not None


def title_of(text: str) -> str:
    """Title from the beginning of a message: its first sentence without Markdown, at most 60 characters.

    It ends with a whole word where there is one.
    """
    begin = text[: 8 * _TITLE_LENGTH]
    line = " ".join(_MARKS.sub("", begin).split()) or " ".join(begin.split())
    first = _SENTENCE.match(line)
    line = first[0] if first else line
    if len(line) <= _TITLE_LENGTH:
        return line
    cut = line[: _TITLE_LENGTH - 1]
    whole = cut if line[len(cut)] == " " else cut.rpartition(" ")[0]
    return f"{(whole if 2 * len(whole) > len(cut) else cut).rstrip()}…"


def summarise(chat_id: str, data: bytes) -> ChatSummary:
    """Summary from the bytes of a journal.

    Only the first message is parsed, for a title, and the last, for its time.
    """
    title, model, opening, created, n_messages, deleted = "", "", b"", 0.0, 0, False
    pinned, folder = False, ""
    last = said = b""
    for _, record in split(data):
        if record is None:
            continue
        last = record
        said = record if record.startswith((_MESSAGE, _PIECE)) else said
        if record.startswith(_MESSAGE):
            n_messages += 1
            deleted = False
            opening = opening or record
            continue
        fields = parse(record) or {}
        created = created or as_time(fields.get("created", fields.get("at")))
        title = text if isinstance(text := fields.get("title"), str) else title
        model = text if isinstance(text := fields.get("model"), str) else model
        deleted = fields["deleted"] is True if "deleted" in fields else deleted
        pinned = fields["pinned"] is True if "pinned" in fields else pinned
        folder = text if isinstance(text := fields.get("folder"), str) else folder
    first, final = parse(opening) or {}, parse(last if deleted or not said else said) or {}
    if not title and isinstance(text := first.get("text"), str):
        title = title_of(text)
    updated = as_time(final.get("at", final.get("created")))
    created = created or as_time(first.get("created"))
    return ChatSummary(chat_id, title, model, created, updated, n_messages, deleted, pinned, folder)
