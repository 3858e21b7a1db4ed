"""The list of chats below headings: pinned ones, folders, and the others by the day they were last written to."""

import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from localrun_tui.widgets.columns import say

if TYPE_CHECKING:
    from localrun.chat.journal import ChatSummary
    from localrun.chat.search import Hit

    Found = tuple[ChatSummary, Hit | None]

PINNED = "★ Pinned"
_DAY = 86_400


def grouped(rows: "Iterable[Found]", now: float) -> "list[tuple[str, list[Found]]]":
    """Headings with the chats below them, which stay in their order. The days are those of this place."""
    calendar = Calendar(now)
    pinned: list[Found] = []
    folders: dict[str, list[Found]] = {}
    days: dict[str, list[Found]] = {}
    for row in rows:
        chat = row[0]
        if chat.pinned:
            pinned.append(row)
        elif chat.folder:
            folders.setdefault(f"▪ {chat.folder}", []).append(row)
        else:
            days.setdefault(calendar.day_of(chat.updated), []).append(row)
    first = [(PINNED, pinned)] if pinned else []
    return [*first, *sorted(folders.items(), key=lambda item: item[0].casefold()), *days.items()]


class Calendar:
    """The headings of days as of `now`, for thousands of chats."""

    def __init__(self, now: float) -> None:
        self._today = _midnight(now)
        self._yesterday = _midnight(self._today - _DAY / 2)

    def day_of(self, at: float) -> str:
        """`Today`, `Yesterday`, `Last 7 days`, `Last 30 days`, `October 2026`."""
        if at >= self._today:
            return "Today"
        if at >= self._yesterday:
            return "Yesterday"
        if at >= self._today - 7 * _DAY:
            return "Last 7 days"
        if at >= self._today - 30 * _DAY:
            return "Last 30 days"
        return time.strftime("%B %Y", time.localtime(at))


def _midnight(at: float) -> float:
    day = time.localtime(at)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


def with_hits(text: Content, words: Sequence[str]) -> Content:
    """`text` with the beginnings of words that were looked for marked, also for eyes without colour."""
    for word in words:
        for found in re.finditer(rf"(?<!\w){re.escape(word)}", text.plain, re.IGNORECASE):
            text = text.stylize("bold underline $text-warning", *found.span())
    return text


def chat_row(chat: "ChatSummary", hit: "Hit | None", words: Sequence[str], is_current: bool, now: float) -> Content:
    """Two lines: the title, and when it was, or what was found in it."""
    mark = "● " if is_current else ""
    title = with_hits(say(chat.title or "(no words yet)", "bold" if is_current else ""), words)
    messages = "message" if chat.n_messages == 1 else "messages"
    when = Content(f"{ago(now - chat.updated)} · {chat.n_messages} {messages}")
    below = (with_hits(say(hit.snippet), words) if hit else when).stylize("$foreground-muted")
    return Content("\n").join([(Content.styled(mark, "$success") + title).truncate(200), below])


def ago(seconds: float, now: str = "now") -> str:
    """`now`, `5 min ago`, `yesterday`, `12 days ago`."""
    if seconds < 60:
        return now
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < _DAY:
        return f"{int(seconds // 3600)} h ago"
    days = int(seconds // _DAY)
    return "yesterday" if days == 1 else f"{days} days ago"
