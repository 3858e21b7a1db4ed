"""Settings, from the one table that also reads and checks config.toml; and the servers."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.base.settings import config_file
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import change_endpoint
from localrun_tui.keys_in_order import keys_wait_for_dialog, keys_wait_until
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.settings.choice_question import ask_for_choice
from localrun_tui.screens.settings.endpoint_form import EndpointForm
from localrun_tui.screens.settings.settings_items import COLUMNS, SettingsItem, setting_detail, setting_item
from localrun_tui.screens.settings.settings_rows import (
    ServerRow,
    SettingRow,
    edited,
    problem,
    sampling_of_loaded,
    server_rows,
    setting_rows,
    write_checked,
)
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.model_list import ModelList
from localrun_tui.widgets.toast import toast_error


class SettingsSearch(LineField):
    """Words to find a setting by."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "submit", "To the list", id="settings.to-list", key_display="⏎")
    ]


class SettingField(LineField):
    """The value of a setting."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep", id="settings.keep", key_display="⏎"),
    ]


class SettingsScreen(Page[frozenset[str]]):
    """`flags` are settings that came with the command line; they go before everything else. `info` is the loaded model,
    whose own sampling is shown. Dismisses with the keys that were changed."""

    CSS_PATH = "settings_screen.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="settings.back"),
        Binding("slash", "search", "Search", id="settings.search", key_display="/"),
        Binding("delete,backspace", "unset", "Default", id="settings.unset", key_display="del"),
        Binding("delete,backspace", "forget", "Forget", id="settings.forget", key_display="del"),
    ]

    def __init__(self, flags: Mapping[str, Any] | None = None, info: ModelInfo | None = None) -> None:
        super().__init__()
        self.info = info
        self.flags = flags or {}
        self.changed: set[str] = set()  # keys of settings
        self._editing: SettingRow | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Settings", id="title")
            yield Static(say(str(config_file() or "not saved: there is no home folder")), id="file")
        yield SettingsSearch(
            placeholder="/ search: a name, a key of config.toml, what it does", id="words", compact=True
        )
        yield ModelList[SettingRow | ServerRow](COLUMNS)
        yield Static("", id="detail")
        yield SettingField(id="editor", compact=True)
        yield Static("", id="problem")
        yield KeyBar()

    def on_mount(self) -> None:
        self._list.show([], "Reading…")
        self._list.options.focus()
        reading = self._reload()
        keys_wait_until(lambda: reading.is_over, self.app)

    @property
    def _list(self) -> "ModelList[SettingRow | ServerRow]":
        return self.query_one(ModelList)

    @property
    def _editor(self) -> Input:
        return self.query_one("#editor", Input)

    def _reload(self) -> Task:
        def read(task: object) -> list[SettingsItem]:
            own = sampling_of_loaded(self.info)
            rows: list[SettingRow | ServerRow] = [*setting_rows(self.flags, own), *server_rows()]
            return [setting_item(row) for row in rows]

        return run_in_background(self, read, lambda items: self._list.show(items, ""), self._unreadable)

    def _unreadable(self, error: LocalrunError) -> None:
        self._list.show([], f"{error.message}\n{error.hint}")

    def action_search(self) -> None:
        self.set_focus(self.query_one(SettingsSearch))  # at once: what is typed next goes there

    @on(Input.Changed, "#words")
    def _filter(self, event: Input.Changed) -> None:
        self._list.filter(event.value)

    @on(Input.Submitted, "#words")
    def _to_list(self) -> None:
        self._list.options.focus()

    @on(ModelList.Highlighted)
    def _show_detail(self) -> None:
        item = self._list.highlighted
        self.query_one("#detail", Static).update(setting_detail(item.value) if item else "")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "search":  # in a field it is typed
            return not isinstance(self.focused, Input)
        if action not in ("unset", "forget"):
            return True
        item = self._list.highlighted if self.is_mounted and not self._editing else None
        row = item.value if item else None
        if action == "unset":
            return isinstance(row, SettingRow) and row.in_file
        return isinstance(row, ServerRow) and row.endpoint is not None

    # ---- changing a setting

    @on(ModelList.Chosen)
    def _change(self, event: ModelList.Chosen) -> None:
        row: SettingRow | ServerRow = event.item.value
        if isinstance(row, ServerRow):
            self._change_server(row.endpoint)
        elif row.key == "theme":
            keys_wait_for_dialog(self.run_worker(self._choose_theme()), self.app)
        elif row.setting.choices:
            ask_for_choice(self, row, lambda word: self._write(row.key, word))
        else:
            self._editing = row
            self.add_class("-editing")
            self._editor.value = edited(row)
            self._editor.placeholder = row.setting.unset
            self._editor.focus()

    async def _choose_theme(self) -> None:
        """Each is shown while one goes through them."""
        from localrun_tui.screens.settings.theme_choice import choose_theme

        if await choose_theme(self.app):
            self._do(lambda: None, "theme")

    @on(Input.Changed, "#editor")
    def _check(self) -> str:
        """The problem of what is typed now."""
        row, typed = self._editing, self._editor.value
        wrong = problem(row.setting, typed) if row and typed else ""
        self.query_one("#problem", Static).update(say(wrong))
        return wrong

    @on(Input.Submitted, "#editor")
    def _accept(self) -> None:
        row, typed = self._editing, self._editor.value
        if row is not None and not self._check():
            self._stop_editing()
            if typed or row.in_file:
                self._write(row.key, typed, unset=not typed)

    def _stop_editing(self) -> None:
        self._editing = None
        self.remove_class("-editing")
        self.query_one("#problem", Static).update("")
        self._list.options.focus()

    def _write(self, key: str, value: str | None, unset: bool = False) -> None:
        if value is not None or unset:
            self._do(lambda: write_checked(key, None if unset else value), key)

    def _do(self, change: Callable[[], object], key: str = "") -> None:
        """Write something in the background, the setting `key` or a server, then read everything again."""

        def done(_: object) -> None:
            self.changed |= {key} - {""}
            self._reload()

        run_in_background(self, lambda task: change(), done, self._show_problem)

    def _show_problem(self, error: LocalrunError) -> None:
        toast_error(self, error)

    # ---- servers

    def _change_server(self, endpoint: Endpoint | None) -> None:
        rows = [item.value for item in self._list.items if isinstance(item.value, ServerRow)]
        others = [row.endpoint.name for row in rows if row.endpoint and row.endpoint is not endpoint]

        def keep(new: Endpoint | None) -> None:
            if new is not None:
                self._do(lambda: change_endpoint(endpoint, new))

        self.app.push_screen(EndpointForm(endpoint, others), keep)

    def action_unset(self) -> None:
        """Set the default again."""
        item = self._list.highlighted
        if item is not None and isinstance(item.value, SettingRow):
            self._write(item.value.key, None, unset=True)

    def action_forget(self) -> None:
        """Forget a server, where the user is sure."""
        item = self._list.highlighted
        if item is None or not isinstance(item.value, ServerRow) or item.value.endpoint is None:
            return
        endpoint = item.value.endpoint
        question = f"Forget the server {endpoint.name}?"
        self.app.push_screen(
            ConfirmScreen(question, [("address", endpoint.url)], "Forget", danger=True),
            lambda yes: self._do(lambda: change_endpoint(endpoint, None)) if yes else None,
        )

    def action_back(self) -> None:
        words = self.query_one(SettingsSearch)
        if self._editing is not None:
            self._stop_editing()
        elif words.value or words.has_focus:
            words.value = ""
            self._list.options.focus()
        else:
            self.dismiss(frozenset(self.changed))
