"""The chats on disk: find one by what was said in it, open, rename, export or delete it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message as TextualMessage
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField

if TYPE_CHECKING:
    from localrun.chat.journal import ChatSummary
    from localrun.chat.search import Hit

_TYPING_PAUSE = 0.25  # seconds before a search begins


class ChatOptions(OptionList):
    """The rows; one key each for what can be done with a chat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open", id="history.open"),
        Binding("r", "rename", "Rename", id="history.rename"),
        Binding("x", "export", "Export", id="history.export"),
        Binding("d,delete", "delete", "Delete", id="history.delete"),
        Binding("slash", "app.focus('search')", "Find", id="history.search", key_display="/"),
    ]

    @dataclass
    class Rename(TextualMessage):
        """Give this chat another title."""

        chat_id: str

    @dataclass
    class Export(TextualMessage):
        """Write this chat to a file."""

        chat_id: str

    @dataclass
    class Delete(TextualMessage):
        """Remove this chat."""

        chat_id: str

    def action_rename(self) -> None:
        self._post(self.Rename)

    def action_export(self) -> None:
        self._post(self.Export)

    def action_delete(self) -> None:
        self._post(self.Delete)

    def _post(self, of_chat: Callable[[str], TextualMessage]) -> None:
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self.post_message(of_chat(option.id))


class SearchBox(LineField):
    """Words to look for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Open the first", id="history.open-first"),
        Binding("down", "app.focus('chats')", "To the list", id="history.to-list"),
    ]


class HistoryList(Vertical):
    """The sidebar."""

    @dataclass
    class Search(TextualMessage):
        """Look for these words in all chats; none means all chats."""

        words: str

    @dataclass
    class Open(TextualMessage):
        """Open this chat, at the message that was found."""

        chat_id: str
        message_id: str | None

    def __init__(self) -> None:
        super().__init__(id="history")
        self._pause: Timer | None = None
        self._found: dict[str, str] = {}  # the message with the words, by chat

    def compose(self) -> ComposeResult:
        yield SearchBox(placeholder="Search all chats", id="search", compact=True)
        yield ChatOptions(id="chats", compact=True)
        yield Static("", id="history-note", markup=False)

    @property
    def search_box(self) -> SearchBox:
        return self.query_one(SearchBox)

    @property
    def options(self) -> ChatOptions:
        return self.query_one(ChatOptions)

    def show(self, rows: "Sequence[tuple[ChatSummary, Hit | None]]", current: str | None, note: str) -> None:
        """Chats, each with what was found in it, if anything."""
        options = self.options
        at = options.highlighted or 0
        options.clear_options()
        now = time.time()
        options.add_options([Option(_row(chat, hit, chat.id == current, now), id=chat.id) for chat, hit in rows])
        self._found = {chat.id: hit.message_id for chat, hit in rows if hit and hit.message_id}
        options.highlighted = min(at, len(rows) - 1) if rows else None
        self.query_one("#history-note", Static).update(note)

    @on(Input.Changed, "#search")
    def search_soon(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(_TYPING_PAUSE, self._search)

    @on(Input.Submitted, "#search")
    def open_first(self) -> None:
        self.options.action_select()

    @on(OptionList.OptionSelected)
    def open_chat(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id is not None:
            self.post_message(self.Open(event.option.id, self._found.get(event.option.id)))

    def _search(self) -> None:
        self.post_message(self.Search(self.query_one(Input).value.strip()))


def _row(chat: "ChatSummary", hit: "Hit | None", is_current: bool, now: float) -> Content:
    mark = "● " if is_current else ""
    title = Content.styled(mark, "$success") + say(chat.title or "(no words yet)", "bold" if is_current else "")
    messages = "message" if chat.n_messages == 1 else "messages"
    below = say(hit.snippet) if hit else Content(f"{ago(now - chat.updated)} · {chat.n_messages} {messages}")
    return Content("\n").join([title.truncate(200), below.stylize("dim")])


def ago(seconds: float) -> str:
    """`now`, `5 min ago`, `yesterday`, `12 days ago`."""
    if seconds < 60:
        return "now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 86_400:
        return f"{int(seconds // 3600)} h ago"
    days = int(seconds // 86_400)
    return "yesterday" if days == 1 else f"{days} days ago"
