"""Getting the recommended model in one step: found on the hub, put into the queue, and loaded once it is there."""

from typing import Any

from textual.app import App

from localrun.backends.registry import usual_memory
from localrun.base.errors import HubError, LocalrunError
from localrun.hub.catalogue import shown_name
from localrun.hub.fits import recommended_variant
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview, must_find_on_hub, preview
from localrun.hub.remote.variants import Variant
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.toast import toast_error


def get_model(app: App[Any], downloads: Downloads, name: str) -> None:
    """Download the precision of a model of the catalogue that fits this machine best; then load it."""

    def done(answer: tuple[RepoPreview, Variant]) -> None:
        found, variant = answer
        downloads.start(found, variant, variant.precision, 0, "auto", then_load=True)

    def failed(error: LocalrunError) -> None:
        words = f"{shown_name(name)} cannot be had now: {error.message}"
        again = "then choose it again in Models (Ctrl+O)"
        toast_error(app, LocalrunError(words, "; ".join(filter(None, (error.hint, again)))))

    run_in_background(app, lambda task: _find(name, task), done, failed)


def _find(name: str, task: Task) -> tuple[RepoPreview, Variant]:
    http = Http(read_access())
    task.on_cancel(http.close)
    try:
        found = preview(http, must_find_on_hub(name))
        if found.repo is None:
            raise HubError("localrun is offline", "try again when there is a network")
        return found, recommended_variant(found, usual_memory().available)[0]
    finally:
        http.close()
