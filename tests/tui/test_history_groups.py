"""Headings of the list of chats, by the calendar."""

import time

from textual.content import Content

from localrun.chat.summary import ChatSummary
from localrun_tui.screens.chat.history_groups import Calendar, grouped, with_hits

NOON = time.mktime((2026, 11, 23, 12, 0, 0, 0, 0, -1))
HOUR, DAY = 3600, 86_400


def test_days_follow_the_calendar_not_24_hours() -> None:
    calendar = Calendar(NOON)
    assert calendar.day_of(NOON - 12 * HOUR) == "Today"
    assert calendar.day_of(NOON - 12 * HOUR - 1) == "Yesterday"
    assert calendar.day_of(NOON - 36 * HOUR - 1) == "Last 7 days"
    assert calendar.day_of(NOON - 8 * DAY) == "Last 30 days"
    assert calendar.day_of(time.mktime((2026, 10, 3, 12, 0, 0, 0, 0, -1))) == "October 2026"


def test_pinned_ones_go_first_then_folders_then_days() -> None:
    def chat(name: str, age: float, pinned: bool = False, folder: str = "") -> tuple[ChatSummary, None]:
        return ChatSummary(name, name, "", 0, NOON - age, 2, False, pinned, folder), None

    rows = [chat("a", 0), chat("b", 1, folder="work"), chat("c", 2 * DAY), chat("d", 3 * DAY, pinned=True, folder="x")]
    named = [(title, [one.id for one, _ in below]) for title, below in grouped(rows, NOON)]
    assert named == [("★ Pinned", ["d"]), ("▪ work", ["b"]), ("Today", ["a"]), ("Last 7 days", ["c"])]


def test_only_beginnings_of_words_are_marked() -> None:
    marked = with_hits(Content("Art, part and Arthur (a.b)"), ["art", "a.b"])
    assert [marked.plain[span.start : span.end] for span in marked.spans] == ["Art", "Art", "a.b"]
