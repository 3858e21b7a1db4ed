"""Storage screen: disk space by kind, how much of it can be freed, and freeing it."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from localrun.base.errors import LocalrunError
from localrun.base.units import gib
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.models.storage_rows import StorageRow, storage_rows
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.meters import bar
from localrun_tui.widgets.model_list import Item, ModelList
from localrun_tui.widgets.toast import toast, toast_error

COLUMNS = (Column("WHAT"), Column("ON DISK", 10, right=True), Column("", 12), Column("CAN BE FREED", 12, right=True))
_BAR = 12


class StorageScreen(Page[None]):
    """Removes only what can be computed or downloaded again, after a question."""

    CSS_PATH = "models_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back", id="storage.back"),
        Binding("delete,backspace", "clear", "Free it", id="storage.clear", key_display="del"),
    ]

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Storage", id="title")
            yield Static("", id="machine")
        yield ModelList[StorageRow](COLUMNS)
        yield Static("", id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self._list.options.focus()
        self._read()

    @property
    def _list(self) -> "ModelList[StorageRow]":
        return self.query_one(ModelList)

    @property
    def _current(self) -> StorageRow | None:
        item = self._list.highlighted
        return item.value if item else None

    def _read(self) -> None:
        if not self._list.items:
            self._list.show([], "Adding up…")
        run_in_background(self, lambda task: storage_rows(), self._show, self._fail)

    def _show(self, rows: list[StorageRow]) -> None:
        whole = sum(row.nbytes for row in rows) or 1
        self._list.show([_item(row, whole) for row in rows], "")
        free = sum(row.free for row in rows)
        self.query_one("#machine", Static).update(say(f"{gib(free)} can be freed", "$foreground-muted"))

    @on(ModelList.Highlighted)
    def _show_detail(self) -> None:
        row = self._current
        self.query_one("#detail", Static).update(say(f"{row.name}: {row.about}") if row else "")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "clear" or bool(self._current and self._current.clear)

    @on(ModelList.Chosen)
    def action_clear(self) -> None:
        row = self._current
        if row is None or row.clear is None:
            return
        clear = row.clear

        def done(freed: int) -> None:
            toast(self, f"{gib(freed)} are free again")
            self._read()

        def answered(yes: bool | None) -> None:
            if yes:
                run_in_background(self, lambda task: clear(), done, self._fail)

        facts = [("frees", gib(row.free)), ("then", row.about)]
        self.app.push_screen(ConfirmScreen(f"Free “{row.name}”?", facts, "Free", "Keep", danger=True), answered)

    def _fail(self, error: LocalrunError) -> None:
        toast_error(self, error)


def _item(row: StorageRow, whole: int) -> Item[StorageRow]:
    free = say(gib(row.free, whole), "$text-success") if row.free else Content("")
    cells = (say(row.name), say(gib(row.nbytes, whole)), bar(row.nbytes / whole, _BAR), free)
    return Item(row.name, Row(COLUMNS, cells, say(row.about, "$foreground-muted")), row)
