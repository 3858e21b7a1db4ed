"""A list of rows in columns: a heading, words to filter by, and what to do when it is empty."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.options import TOKEN_ANYWHERE, in_app
from localrun_tui.widgets.columns import Column, Row, header, say
from localrun_tui.widgets.marked_options import MarkedOptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item(Generic[T]):
    """One row: `key` tells it from the others across refreshes, `value` is its object, and `words` find it
    in addition to the shown text."""

    key: str
    row: Row
    value: T
    words: str = ""


class ModelList(Vertical, Generic[T]):
    """Items, one of them highlighted. Messages: Chosen by Enter or a click, Highlighted."""

    DEFAULT_CSS = """
    ModelList {
        & > #head { height: 1; padding: 0 2 0 1; }
        & > #empty { display: none; height: 1fr; padding: 1 3; color: $foreground-muted; }
        &.-empty {
            & > #head { display: none; }
            & > OptionList { height: 0; }  /* not hidden, so that it keeps the focus */
            & > #empty { display: block; }
        }
        & > OptionList {
            height: 1fr; border: none; padding: 0; background: transparent; background-tint: transparent 0%;
            scrollbar-size-vertical: 1; scrollbar-gutter: stable;
            & > .option-list--option { padding: 0 1; }
            & > .option-list--option-highlighted { background: $foreground 8%; color: $foreground; text-style: none; }
            & > .option-list--option-hover { background: $foreground 5%; }
        }
        & > OptionList:focus {
            border: none; background-tint: transparent 0%;
            & > .option-list--option-highlighted {
                background: $primary 20%; color: $foreground; text-style: bold;
            }
        }
    }
    """

    @dataclass
    class Chosen(Message):
        item: Item[Any]

    class Highlighted(Message):
        """Another item is highlighted, or it has changed, or there is none."""

    def __init__(
        self, columns: Sequence[Column], *, id: str | None = None, chooses: Callable[[T], bool] = lambda value: True
    ) -> None:
        """`chooses`: whether Enter does something with an item."""
        super().__init__(id=id)
        self._head = header(columns)
        self._chooses = chooses
        self.items: list[Item[T]] = []
        self._all: list[Item[T]] = []
        self._words: list[str] = []
        self._when_empty = self._when_none = ""

    def compose(self) -> ComposeResult:
        yield Static(self._head, id="head")
        yield _Options(self._may_choose)
        yield Static("", id="empty", markup=False)

    def on_mount(self) -> None:
        self._show()

    @property
    def options(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def highlighted(self) -> Item[T] | None:
        """The highlighted item; None also before there is a list and once the screen is being left."""
        options = self.query(OptionList)
        index = options.first().highlighted if options else None
        return self.items[index] if index is not None and index < len(self.items) else None

    def _may_choose(self) -> bool:
        item = self.highlighted
        return item is not None and self._chooses(item.value)

    def show(self, items: Sequence[Item[T]], when_empty: str) -> None:
        """Other items; the highlight stays where it was if that is still there. `when_empty` says what to do then."""
        self._all = list(items)
        longest = max((item.row.in_rest for item in self._all), default=0)
        self._head.longest = longest
        for item in self._all:
            item.row.longest = longest
        self._when_empty = when_empty
        self._show()

    def show_error(self, error: LocalrunError, token: str = TOKEN_ANYWHERE) -> None:
        """No items, but what happened and what to try; `token` takes one of the hub."""
        self.show([], in_app("\n".join(filter(None, (error.message, error.hint))), token))

    def filter(self, text: str, when_none: str = "", elsewhere: str = "") -> None:
        """Show only items with every word of `text`. Where there is none, `when_none` says what to do, or that there is
        none, and `elsewhere`."""
        words = text.lower().split()
        self._when_none = when_none or f"nothing here has the words “{' '.join(words)}”\n{elsewhere}".strip()
        if words != self._words:
            self._words = words
            self._show()

    def highlight(self, key: str) -> None:
        """Move to the item called `key`, if it is shown."""
        for index, item in enumerate(self.items):
            if item.key == key:
                self.options.highlighted = index

    def _show(self) -> None:
        if not self.is_mounted:
            return
        before, keys = self.highlighted, [item.key for item in self.items]
        self.items = [item for item in self._all if _matches(item, self._words)]
        options = self.options
        if keys and keys == [item.key for item in self.items]:  # nothing jumps
            for index, item in enumerate(self.items):
                options.replace_option_prompt_at_index(index, item.row)
            self.post_message(self.Highlighted())
            return
        options.set_options([Option(item.row, id=item.key) for item in self.items])
        self.set_class(not self.items, "-empty")
        options.refresh_bindings()
        empty = self.query_one("#empty", Static)
        text = self._when_none if self._all and self._words else self._when_empty
        empty.update(Content("\n").join(say(line) for line in text.split("\n")))
        if self.items:
            options.highlighted = 0
            if before is not None:
                self.highlight(before.key)
        self.post_message(self.Highlighted())

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(self.Highlighted())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        item = next((item for item in self.items if item.key == event.option_id), None)
        if item is not None:
            self.post_message(self.Chosen(item))


class _Options(MarkedOptions, inherit_bindings=False):
    """Left and right are the screen's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Choose", id="list.choose"),
        Binding("up", "cursor_up", show=False, id="list.up"),
        Binding("down", "cursor_down", show=False, id="list.down"),
        Binding("pageup", "page_up", show=False, id="list.page-up"),
        Binding("pagedown", "page_down", show=False, id="list.page-down"),
        Binding("home", "first", show=False, id="list.first"),
        Binding("end", "last", show=False, id="list.last"),
    ]

    def __init__(self, may_choose: Callable[[], bool]) -> None:
        super().__init__(markup=False)
        self._may_choose = may_choose

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "select":
            return self._may_choose()
        return super().check_action(action, parameters)


def _matches(item: Item[T], words: Sequence[str]) -> bool:
    text = f"{item.words} {item.row.plain}".lower()
    return all(word in text for word in words)
