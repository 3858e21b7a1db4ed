"""Choose a model: on disk, in the catalogue, on the hub, or on a server. Gives a ModelChoice, or None."""

import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Paste, Resize
from textual.widgets import ContentSwitcher, Input, Static, Tab, Tabs

from localrun.backends.registry import usual_memory
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoint import Endpoint
from localrun.hub.disk.stored import StoredModel
from localrun_tui.markdown.wrapping import first_lines
from localrun_tui.screens.downloads.downloads import DownloadBadge, DownloadsScreen
from localrun_tui.screens.models.default_model import make_default
from localrun_tui.screens.models.disk_section import DiskSection
from localrun_tui.screens.models.filter_box import FilterBox
from localrun_tui.screens.models.model_rows import DiskRow, ServerModel
from localrun_tui.screens.models.model_sections import SECTIONS, machine_line, subject_of, subject_of_stored
from localrun_tui.screens.models.models_keys import MODELS_KEYS, OF_A_ROW, is_in_list
from localrun_tui.screens.models.open_path import ask_for_path, find_at
from localrun_tui.screens.models.precision_menu import DOWNLOADING, PrecisionMenu
from localrun_tui.screens.models.removal import ask_to_remove
from localrun_tui.screens.models.section import Section
from localrun_tui.screens.models.server_change import ask_for_server, ask_to_forget
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.model_list import ModelList
from localrun_tui.widgets.model_path_field import is_typed_path


class ModelsScreen(Page[ModelChoice | None]):
    """The memory that the loaded model holds counts as free, since another one takes its place.

    `section` is the list to begin with: disk, catalogue, hub or remote; `words` are those to filter it by. A model that
    is `in_use` by now, by its path, is not deleted.
    """

    CSS_PATH = "models_screen.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = MODELS_KEYS

    def __init__(
        self,
        section: str = "disk",
        held_bytes: Callable[[], int] = lambda: 0,
        title: str = "Models",
        words: str = "",
        in_use: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__()
        self.asked = title
        self._in_use = in_use
        self.held_bytes = held_bytes
        self.first_section = section
        self.first_words = words

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static(self.asked, id="title")
            yield DownloadBadge()
            yield Static(machine_line(), id="machine")
        yield FilterBox(self.first_words, id="filter", compact=True)
        yield Tabs(*(Tab(section.TITLE, id=name) for name, section in SECTIONS.items()), active=self.first_section)
        with ContentSwitcher(initial=self.first_section):
            for name, section in SECTIONS.items():
                yield section(self.budget, id=name)
        yield Static("", id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        self._show_section()

    def budget(self) -> int:
        """Bytes that a model may take; may be called on any thread."""
        return usual_memory().available + self.held_bytes()

    @property
    def section_name(self) -> str:
        return self.query_one(ContentSwitcher).current or ""

    @property
    def section(self) -> Section[Any]:
        """The list that is shown."""
        return self.query_one(f"#{self.section_name}", Section)

    @property
    def box(self) -> Input:
        return self.query_one("#filter", Input)

    @property
    def _is_typing(self) -> bool:
        """Whether the box has the focus; the box itself learns that later."""
        return self.focused is self.box

    @on(ModelList.Chosen)
    def _open(self, event: ModelList.Chosen) -> None:
        value = event.item.value
        if isinstance(value, ServerModel):
            if value.problem and not value.asking:
                self.action_change_server()
            elif not value.problem:
                self.dismiss(ModelChoice(value.choice))
        else:
            self.app.push_screen(PrecisionMenu(subject_of(value), self.budget), self._chosen)

    def _chosen(self, answer: ModelChoice | str | None) -> None:
        if isinstance(answer, ModelChoice):
            self.dismiss(answer)
        elif answer == DOWNLOADING:
            self.action_downloads()

    def _show_found(self, models: list[StoredModel]) -> None:
        """Open the model at a path; several are listed, until the list is read again."""
        if len(models) == 1:
            self.app.push_screen(PrecisionMenu(subject_of_stored(models[0]), self.budget), self._chosen)
            return
        self.query_one(Tabs).active = "disk"
        self.box.value = ""
        self.query_one(DiskSection).show_only(models)
        self.set_focus(self.query_one(DiskSection).options)

    def action_open_path(self) -> None:
        ask_for_path(self, self._show_found)

    def action_downloads(self) -> None:
        self.app.push_screen(DownloadsScreen(), self._chosen)

    def action_remove(self) -> None:
        item = self.section.highlighted
        if item is not None and isinstance(item.value, DiskRow):
            ask_to_remove(self, item.value.model, self._in_use(), self.section.reload)
        elif item is not None and isinstance(item.value, ServerModel):
            ask_to_forget(self, item.value.endpoint, self.section.reload)

    def action_reveal(self) -> None:
        """Copy the path of the highlighted model, and open its folder where there is something to open it in."""
        item = self.section.highlighted
        if item is not None and isinstance(item.value, DiskRow):
            path = item.value.model.path
            self.app.copy_to_clipboard(str(path))
            if sys.platform in ("darwin", "win32") or os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}:
                self.app.open_url(path.parent.as_uri())

    def action_update(self) -> None:
        from localrun_tui.screens.models.newer_version import look_for_newer

        item = self.section.highlighted
        if item is not None and isinstance(item.value, DiskRow):
            look_for_newer(self, item.value.model)

    def action_storage(self) -> None:
        from localrun_tui.screens.models.storage_screen import StorageScreen

        self.app.push_screen(StorageScreen(), lambda _: self.section.reload())

    def action_make_default(self) -> None:
        """The highlighted model answers from now on when none is named, and the app begins with it."""
        item = self.section.highlighted
        if item is not None and isinstance(item.value, DiskRow):
            make_default(self, item.value, self.section.reload)

    def action_add_server(self) -> None:
        self._ask_for_server(None)

    def action_change_server(self) -> None:
        item = self.section.highlighted
        if item is not None and isinstance(item.value, ServerModel):
            self._ask_for_server(item.value.endpoint)

    def _ask_for_server(self, known: Endpoint | None) -> None:
        taken = [item.value.endpoint.name for item in self.section.items if isinstance(item.value, ServerModel)]
        ask_for_server(self, known, taken, self.section.reload)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done in this list."""
        if action in ("filter", "search") and self._is_typing:
            return False
        if action in OF_A_ROW and self.section.highlighted is None:
            return False
        return is_in_list(action, self.section_name)

    def action_back(self) -> None:
        if self.box.value:
            self.box.value = ""
            self.set_focus(self.section.options)
        elif self._is_typing:
            self.set_focus(self.section.options)
        else:
            self.dismiss(None)

    def action_filter(self) -> None:
        self.set_focus(self.box)

    action_search = action_filter

    def action_section(self, step: int) -> None:
        tabs, names = self.query_one(Tabs), list(SECTIONS)
        tabs.active = names[(names.index(tabs.active) + step) % len(names)]

    def action_reload(self) -> None:
        self.section.reload()

    @on(Tabs.TabActivated)
    def _change_section(self, event: Tabs.TabActivated) -> None:
        self.query_one(ContentSwitcher).current = event.tab.id
        self._show_section()

    def _show_section(self) -> None:
        self.box.placeholder = f"/ {self.section.HINT}"
        self._filter()
        if not self._is_typing:
            self.set_focus(self.section.options)

    def on_paste(self, event: Paste) -> None:
        """Put into the box what is pasted while the list has the focus: a name, or a path."""
        self.set_focus(self.box)
        self.box.post_message(Paste(event.text))

    @on(Input.Changed, "#filter")
    def _filter(self) -> None:
        self.section.look_for(self.box.value)
        self._show_detail()
        self.refresh_bindings()

    @on(Input.Submitted, "#filter")
    def _to_list(self) -> None:
        if is_typed_path(self.box.value):
            find_at(self, self.box.value, self._show_found)
        else:
            self.set_focus(self.section.options)

    @property
    def _detail_lines(self) -> int:
        """Lines that are about the highlighted one: most of the screen is the list's."""
        return min(max(self.size.height // 3, 3), 10)

    @on(Resize)
    @on(ModelList.Highlighted)
    def _show_detail(self) -> None:
        item = self.section.highlighted
        detail = self.section.detail(item) if item else Content("")
        self.query_one("#detail", Static).update(first_lines(detail, self.size.width - 4, self._detail_lines))
