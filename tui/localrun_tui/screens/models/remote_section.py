"""The list of models on servers."""

from functools import partial

from textual.content import Content

from localrun.base.errors import LocalrunError, NotFoundError
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import read_endpoints
from localrun_tui.screens.models import model_items as items
from localrun_tui.screens.models.model_rows import ServerModel
from localrun_tui.screens.models.section import Section
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.model_list import Item


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
