"""Full-text search over all chats, by beginnings of words; case and accents do not matter.

The index is derived: it is updated before each search, and rebuilt when it is missing or damaged. Where there cannot be
one, all chats are read instead, with the same result.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.files import make_private
from localrun.chat.journal import INDEX_NAME, ChatStore
from localrun.chat.summary import title_of
from localrun.chat.tree import Message

if TYPE_CHECKING:
    import sqlite3

_VERSION = 2
_CJK = r"\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")  # scripts without spaces: each character is a word
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
_BEFORE, _AFTER = 30, 90  # characters of a snippet around what was found
_SECONDS = 3.0  # to wait for another program that writes to the index


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that has all the words; `message_id` is empty where the title has them."""

    chat_id: str
    message_id: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class _Row:
    chat_id: str
    message_id: str
    created: float
    text: str


def search(store: ChatStore, words: str, limit: int = 50) -> list[Hit]:
    """Messages of all branches with all `words`, the newest first; none without words."""
    phrases = [phrase for word in words.split() if (phrase := folded(word))]
    if not phrases:
        return []
    rows = _look_up(store, phrases, limit)
    if rows is None:
        matching = (row for row in _all_rows(store) if matches(row.text, phrases))
        rows = sorted(matching, key=lambda row: (row.created, row.chat_id, row.message_id), reverse=True)[:limit]
    return [
        Hit(row.chat_id, row.message_id, _title(store, row.chat_id), snippet(row.text, words.split())) for row in rows
    ]


def _title(store: ChatStore, chat_id: str) -> str:
    summary = store.summary(chat_id)
    return summary.title if summary else ""


def folded(text: str) -> str:
    """The words of a text without case and accents, each after a space."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return "".join([f" {word}" for word in _WORD.findall(unicodedata.normalize("NFC", plain))])


def matches(text: str, phrases: list[str]) -> bool:
    """Whether each of the folded `phrases` begins a word of `text`."""
    words = folded(text)
    return all(phrase in words for phrase in phrases)


def snippet(text: str, words: list[str]) -> str:
    """A line of `text` around the first match."""
    places = [found.start() for word in words if (found := re.search(re.escape(word), text, re.IGNORECASE))]
    start = max(0, min(places, default=0) - _BEFORE)
    end = start + _BEFORE + _AFTER
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


def _rows(store: ChatStore, chat_id: str) -> Iterator[_Row]:
    """Rows of one chat for the index; none where it no longer exists."""
    with suppress(LocalrunError):
        chat = store.peek(chat_id)
        messages = [message for message in chat.tree.messages() if not message.lost]
        if not any(title_of(message.text) == chat.title for message in messages):  # that finds the message itself
            yield _Row(chat_id, "", chat.created, chat.title)
        yield from (_Row(chat_id, m.id, m.created, m.text) for m in messages)


def _all_rows(store: ChatStore) -> Iterator[_Row]:
    for summary in store.summaries():
        yield from _rows(store, summary.id)


def _look_up(store: ChatStore, phrases: list[str], limit: int) -> list[_Row] | None:
    """Search in the index; None where there cannot be one."""
    if store.folder is None:
        return None
    try:
        import sqlite3
    except ImportError:
        return None
    path = store.folder / INDEX_NAME

    for _ in range(2):
        try:
            _create(path)
            with closing(sqlite3.connect(path, timeout=_SECONDS)) as index:
                _prepare(index)
                _bring_up_to_date(index, store)
                return _find(index, phrases, limit)
        except (OSError, sqlite3.OperationalError):  # no FTS5, no place to write, or another program is at it for long
            return None
        except sqlite3.DatabaseError:
            with suppress(OSError):
                path.unlink()
    return None


def _create(path: Path) -> None:
    """Create the index readable for its user only: it holds chat texts. SQLite's other files follow its mode."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        make_private(path)  # not opened: closing it would end the locks that another search here has on it


def _prepare(index: "sqlite3.Connection") -> None:
    (version,) = index.execute("PRAGMA user_version").fetchone()
    if version == _VERSION:
        return
    with index:
        index.execute("DROP TABLE IF EXISTS found")
        index.execute("DROP TABLE IF EXISTS files")
        index.execute(
            "CREATE VIRTUAL TABLE found USING fts5(words, chat UNINDEXED, message UNINDEXED, created UNINDEXED,"
            " text UNINDEXED, tokenize='unicode61 remove_diacritics 0')"
        )
        index.execute("CREATE TABLE files (chat TEXT PRIMARY KEY, size INTEGER, changed INTEGER)")
        index.execute(f"PRAGMA user_version = {_VERSION}")


def _bring_up_to_date(index: "sqlite3.Connection", store: ChatStore) -> None:
    """Index changed chats, and remove those that no longer exist."""
    there = store.states()
    known = {chat: (size, changed) for chat, size, changed in index.execute("SELECT * FROM files")}
    stale = [chat for chat in known.keys() | there.keys() if known.get(chat) != there.get(chat)]
    if not stale:
        return
    with index:
        for chat in stale:
            if chat in known:
                index.execute("DELETE FROM found WHERE chat = ?", (chat,))
                index.execute("DELETE FROM files WHERE chat = ?", (chat,))
            if chat in there:
                rows = ((folded(r.text), r.chat_id, r.message_id, r.created, r.text) for r in _rows(store, chat))
                index.executemany("INSERT INTO found VALUES (?, ?, ?, ?, ?)", rows)
                index.execute("INSERT INTO files VALUES (?, ?, ?)", (chat, *there[chat]))


def _find(index: "sqlite3.Connection", phrases: list[str], limit: int) -> list[_Row]:
    query = " AND ".join(f'"{phrase.strip()}" *' for phrase in phrases)
    rows = index.execute(
        "SELECT chat, message, created, text FROM found WHERE words MATCH ?"
        " ORDER BY created DESC, chat DESC, message DESC LIMIT ?",
        (query, limit),
    )
    return [_Row(*row) for row in rows]


def places(messages: Iterable[Message], words: str) -> list[str]:
    """Ids of messages in which each word begins a word, as in the search over all chats."""
    phrases = [phrase for word in words.split() if (phrase := folded(word))]
    return [message.id for message in messages if phrases and matches(message.text, phrases)]
