"""Looking whether the hub has a newer version of a model that is on disk, and getting it."""

from dataclasses import replace
from os.path import realpath
from pathlib import Path
from typing import Any

from textual.screen import Screen

from localrun.base.errors import HubError, LocalrunError
from localrun.base.units import gib
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import same_precision
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview, must_find_on_hub, preview
from localrun.hub.remote.variants import Variant
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.downloads.downloads import downloads_of
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.toast import toast, toast_error


def look_for_newer(screen: Screen[Any], model: StoredModel) -> None:
    """Ask the hub; where it has other bytes under the same name, ask whether to get them."""

    def done(newer: tuple[RepoPreview, Variant] | None) -> None:
        if newer is None:
            toast(screen, f"{model.name} {model.precision} is as the hub has it")
            return
        found, variant = newer

        def answered(yes: bool | None) -> None:
            if yes:
                downloads_of(screen).start(found, variant, model.precision, None, "auto")

        facts = [("from", found.wanted.repo), ("size", gib(variant.bytes)), ("then", "the one you have stays, too")]
        question = f"The hub has another version of {model.name} {model.precision}. Download it?"
        screen.app.push_screen(ConfirmScreen(question, facts, "Download", "Not now"), answered)

    def failed(error: LocalrunError) -> None:
        toast_error(screen, error)

    if model.source != "hub":
        toast(screen, "Only models from the hub can be looked up", str(model.path))
    else:
        run_in_background(screen, lambda task: _newer(model, task), done, failed)


def _newer(model: StoredModel, task: Task) -> tuple[RepoPreview, Variant] | None:
    http = Http(read_access())
    task.on_cancel(http.close)
    try:
        found = preview(http, replace(must_find_on_hub(model.name), precision=""))
    finally:
        http.close()
    if found.repo is None:
        raise HubError("localrun is offline", "try again when there is a network")
    for variant in found.variants:
        if variant.format == model.format and same_precision(variant.precision, model.precision):
            return None if is_current(model.path, variant) else (found, variant)
    raise HubError(f"{model.name} has no {model.precision} any more", "Catalogue and Hub show what there is")


def is_current(path: Path, variant: Variant) -> bool:
    """Whether the file is one of those that the hub has now: the cache names each by its hash."""
    file = path if path.is_file() else next(path.glob("*.safetensors"), path)
    return Path(realpath(file)).name in {one.etag for one in variant.files}
