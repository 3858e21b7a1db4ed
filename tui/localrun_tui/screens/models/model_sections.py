"""The four lists of models, each filled in the background."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from textual.content import Content

from localrun.backends.registry import usual_memory
from localrun.base.errors import LocalrunError, NotFoundError
from localrun.base.settings import read_settings
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import read_endpoints
from localrun.hub.catalogue_rows import CatalogueRow, catalogue_rows, first_model, unmeasured_rows
from localrun.hub.disk.library import scan
from localrun.hub.disk.obstacles import stored_obstacle
from localrun.hub.disk.stored import StoredModel
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.precision_offer import Subject
from localrun.hub.remote import api
from localrun.hub.remote.preview import find_on_hub
from localrun.hub.resolve import resolve
from localrun_tui.screens.models import model_items as items
from localrun_tui.screens.models.model_card import ModelCard, stored_card
from localrun_tui.screens.models.model_rows import (
    DiskRow,
    HubRow,
    ServerModel,
    disk_rows,
    hub_rows,
)
from localrun_tui.screens.models.open_path import how_to_open
from localrun_tui.screens.models.section import Section
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.model_list import Item, ModelList

SEARCH_LIMIT = 50
MIN_TERM = 2  # characters


class DiskSection(Section[DiskRow]):
    TITLE, HINT, COLUMNS = "On disk", "filter what is on disk, or the path of a model", items.DISK_COLUMNS
    ELSEWHERE = "Enter, then → looks for them in the catalogue, and → again on the hub."

    def __init__(self, budget: Callable[[], int], id: str) -> None:
        super().__init__(budget, id)
        self._cards: dict[Path, ModelCard | None] = {}  # None: its file is being looked at

    def reload(self) -> None:
        def work(task: Task) -> tuple[list[DiskRow], Path | None]:
            return disk_rows(), _default_path()

        def done(answer: tuple[list[DiskRow], Path | None]) -> None:
            rows, default = answer
            empty = "No model is on this machine yet.\nThe catalogue (→) shows good ones; f opens a file or folder."
            self.show(items.disk_items(rows, default), empty)

        self.load(work, done)

    def show_only(self, models: list[StoredModel]) -> None:
        """Show these instead, such as those of a folder that is not searched."""
        self.show(items.disk_items([DiskRow(model, obstacle=stored_obstacle(model)) for model in models]), "")

    def detail(self, item: Item[DiskRow]) -> Content:
        """Card of a model, once its file was read."""
        path = item.value.model.path
        if path not in self._cards:
            self._cards[path] = None
            run_in_background(
                self, lambda task: stored_card(item.value.model, self.budget()), partial(self._keep, path)
            )
        card = self._cards[path]
        return items.disk_detail(item.value, card)

    def _keep(self, path: Path, card: ModelCard) -> None:
        self._cards[path] = card
        self.post_message(ModelList.Highlighted())


def _default_path() -> Path | None:
    """Where the model is that answers when none is named; None without a setting, or when it is gone."""
    name = read_settings().model
    try:
        return resolve(name).path if name else None
    except LocalrunError:
        return None


class CatalogueSection(Section[CatalogueRow]):
    TITLE, HINT, COLUMNS = "Catalogue", "filter the catalogue: qwen, coder, 4b, apache", items.CATALOGUE_COLUMNS
    ELSEWHERE = "Enter, then → looks for them on the hub."
    suggested = ""
    _is_measured = False

    def reload(self) -> None:
        """List the names at once, and what fits of each a moment later."""

        def named(rows: list[CatalogueRow]) -> None:
            self.show([items.catalogue_item(row, False) for row in rows], "")
            self.load(lambda task: catalogue_rows(self.budget(), scan()), measured)

        def measured(rows: list[CatalogueRow]) -> None:
            untouched = not self._is_measured and self.highlighted is next(iter(self.items), None)
            self._is_measured = True
            first = first_model(rows, usual_memory().total)
            self.suggested = first.name if first else ""
            rows.sort(key=lambda row: row.name != self.suggested)  # it goes first, the others by size
            self.show([items.catalogue_item(row, row.name == self.suggested) for row in rows], "")
            if untouched:
                self.highlight(self.suggested)

        if self._is_measured:
            self.load(lambda task: catalogue_rows(self.budget(), scan()), measured)
        else:
            self.load(lambda task: unmeasured_rows(usual_memory().total), named)

    def detail(self, item: Item[CatalogueRow]) -> Content:
        if not self._is_measured:
            return say("looking at what fits this machine…", "$foreground-muted")
        return items.catalogue_detail(item.value, item.value.name == self.suggested)


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
        self.show([], f"Searching for “{self.term}”…")
        self.load(self._search, self._found)

    def _search(self, task: Task) -> list[HubRow] | None:
        access = read_access()
        if access.offline:
            return None
        http = Http(access)
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


class RemoteSection(Section[ServerModel]):
    TITLE, HINT, COLUMNS = "Servers", "filter models on servers", items.REMOTE_COLUMNS

    def reload(self) -> None:
        """Ask every server at once; each one shows up as soon as it answers, or fails to."""
        self._found: dict[str, list[ServerModel]] = {}
        if not self.items:
            self.show([], "Asking the servers…")
        self.load(lambda task: read_endpoints(), self._ask)

    def _ask(self, endpoints: list[Endpoint]) -> None:
        for endpoint in endpoints:
            self._found[endpoint.name] = [ServerModel(endpoint, problem="asking…", asking=True)]
            run_in_background(self, partial(_models_of, endpoint), partial(self._answer, endpoint.name))
        self._show_found()

    def _answer(self, name: str, models: list[ServerModel]) -> None:
        if name in self._found:
            self._found[name] = models
            self._show_found()

    def _show_found(self) -> None:
        empty = "No server is set up.\nPress a to add one that speaks the OpenAI protocol (vLLM, llama.cpp …)."
        self.show([items.remote_item(model) for models in self._found.values() for model in models], empty)

    def detail(self, item: Item[ServerModel]) -> Content:
        return items.remote_detail(item.value)


def _models_of(endpoint: Endpoint, task: Task) -> list[ServerModel]:
    """Models that a server offers, and the one that its user names; a line that says why when it cannot be asked."""
    from localrun.client.remote.http_errors import ServerFailedError
    from localrun.client.remote.models import list_models
    from localrun.client.remote.probe import probe_all

    named = ServerModel(endpoint, endpoint.model)
    try:
        offered = list_models(endpoint)
        known = zip(offered, probe_all(endpoint, offered), strict=True)
        models = [ServerModel(endpoint, model.id, ctx=about.ctx, about=about.summary) for model, about in known]
    except LocalrunError as error:
        may_answer = endpoint.model and isinstance(error, NotFoundError | ServerFailedError)
        return [named if may_answer else ServerModel(endpoint, problem=error.message, hint=error.hint)]
    if models:
        return models
    nothing = "press Enter and give the model's name, if it has one that it does not list"
    return [named if endpoint.model else ServerModel(endpoint, problem="offers no models", hint=nothing)]


SECTIONS: dict[str, type[Section[Any]]] = {
    "disk": DiskSection,
    "catalogue": CatalogueSection,
    "hub": HubSection,
    "remote": RemoteSection,
}


def subject_of(row: DiskRow | CatalogueRow | HubRow) -> Subject:
    """The subject of the precision menu for a row."""
    if isinstance(row, HubRow):
        repo = row.found.repo
        return Subject(repo, wanted=find_on_hub(repo))
    if isinstance(row, CatalogueRow):
        return Subject(row.name, wanted=find_on_hub(row.name))
    return subject_of_stored(row.model)


def subject_of_stored(model: StoredModel) -> Subject:
    """The same for a model on disk."""
    return Subject(model.name, model, find_on_hub(model.name) if model.source == "hub" else None)


def machine_line() -> Content:
    """One line about the machine."""
    now = usual_memory()
    from localrun.base.units import gib

    return say(f"{gib(now.available)} of {gib(now.total)} memory free", "$foreground-muted")
