"""The list of what the hub finds."""

from textual.content import Content

from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote import api
from localrun_tui.screens.models import model_items as items
from localrun_tui.screens.models.model_rows import HubRow, hub_rows
from localrun_tui.screens.models.open_path import how_to_open
from localrun_tui.screens.models.section import Section
from localrun_tui.state.background import Task, tell
from localrun_tui.widgets.model_list import Item

SEARCH_LIMIT = 50
MIN_TERM = 2  # characters


class HubSection(Section[HubRow]):
    TITLE, HINT, COLUMNS = "Hub", "search Hugging Face: a name, a size, a task", items.HUB_COLUMNS
    DEBOUNCE = 0.35  # seconds after the last key

    term = ""
    _path = ""  # says how to open what is typed, where that is a path

    def reload(self) -> None:
        self._ask()

    def look_for(self, words: str) -> None:
        self._path = how_to_open(words)  # which is not the hub's business
        term = "" if self._path else " ".join(words.split())
        if term != self.term:
            self.term = term
            if self._reading is not None:
                self._reading.cancel()
            self.set_timer(self.DEBOUNCE, lambda: self._ask() if term == self.term else None)
        if self._path:
            self._ask()

    def _ask(self) -> None:
        if len(self.term) < MIN_TERM:
            self.show([], self._path or "Press / and type what to look for, such as “qwen3 4b” or “coder”.")
            return
        self.show([], self._searching)
        self.load(self._search, self._found)

    @property
    def _searching(self) -> str:
        return f"Searching for “{self.term}”…"

    def _wait(self, task: Task, why: str) -> None:
        """Say what the search waits for, while it does."""
        if not task.is_over:
            self.show([], f"{self._searching}\n{why}")

    def _search(self, task: Task) -> list[HubRow] | None:
        access = read_access()
        if access.offline:
            return None
        http = Http(access, lambda why: tell(self, self._wait, task, why))
        task.on_cancel(http.close)
        try:
            return hub_rows(api.search(http, self.term, SEARCH_LIMIT), self.budget())
        finally:
            http.close()

    def _found(self, rows: list[HubRow] | None) -> None:
        if rows is None:
            self.show([], "localrun is offline (HF_HUB_OFFLINE): the catalogue and what is on disk still work.")
        else:
            nothing = f"The hub has nothing for “{self.term}”: try fewer words."
            self.show([items.hub_item(row) for row in rows], nothing)

    def detail(self, item: Item[HubRow]) -> Content:
        return items.hub_detail(item.value)
