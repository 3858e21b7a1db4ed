"""The chats on disk: search, open, and one key for each action."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.dataclass import dataclass
from localrun_tui.screens.chat.history_groups import chat_row, grouped
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.marked_options import MarkedOptions

if TYPE_CHECKING:
    from localrun_tui.screens.chat.history_groups import Found

_TYPING_PAUSE = 0.25  # seconds before a search begins
_PAGE = 100  # rows that are put into the list at once


class ChatOptions(MarkedOptions):
    """The rows, with a key for each action on a chat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open", id="history.open"),
        Binding("r", "act('rename')", "Rename", id="history.rename"),
        Binding("slash", "app.focus('search')", "Find", id="history.search", key_display="/"),
        Binding("p", "act('pin')", "Pin", id="history.pin"),
        Binding("f", "act('folder')", "Folder", id="history.folder"),
        Binding("c", "act('duplicate')", "Copy", id="history.duplicate"),
        Binding("x", "act('export')", "Export", id="history.export"),
        Binding("d,delete", "act('delete')", "Delete", id="history.delete"),
        Binding("u", "screen.undelete", "Undo", id="history.undelete"),
    ]

    @dataclass
    class Act(TextualMessage):
        """Do something with a chat: one of the names in HistoryActions."""

        what: str
        chat_id: str

    def action_act(self, what: str) -> None:
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self.post_message(self.Act(what, option.id))


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
        self._rest: Iterator[Option] = iter(())  # rows that are not in the list yet

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

    def show(self, rows: "Sequence[Found]", words: Sequence[str], current: str | None, note: str) -> None:
        """Chats, each with what was found in it, if anything. A long list is filled as one goes down. The open chat is
        highlighted until somebody goes through the list."""
        now, options = time.time(), self.options
        at = options.highlighted_option.id if options.highlighted_option else None
        if current is not None and self.screen.focused not in (options, self.search_box):
            at = current
        before = options.highlighted or 0
        self._found = {chat.id: hit.message_id for chat, hit in rows if hit and hit.message_id}
        self._rest = _options(grouped(rows, now), words, current, now)
        options.set_options(list(islice(self._rest, _PAGE)))
        places = [number for number, option in enumerate(options.options) if not option.disabled]
        same = next((number for number in places if options.options[number].id == at), None)
        nearest = min(places, key=lambda number: abs(number - before), default=None)  # where that one is gone
        options.highlighted = same if same is not None else nearest
        self.query_one("#history-note", Static).update(note)

    @on(OptionList.OptionHighlighted)
    def _fill(self, event: OptionList.OptionHighlighted) -> None:
        """Add what comes after the last rows, before one gets there."""
        event.stop()
        if event.option_index >= self.options.option_count - _PAGE // 4:
            self.options.add_options(islice(self._rest, _PAGE))

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


def _options(
    groups: "Iterable[tuple[str, list[Found]]]", words: Sequence[str], current: str | None, now: float
) -> Iterator[Option]:
    """Headings and chats; each is made when it is asked for."""
    for title, rows in groups:
        yield Option(say(title, "bold $text-accent"), disabled=True)
        for chat, hit in rows:
            yield Option(chat_row(chat, hit, words, chat.id == current, now), id=chat.id)
