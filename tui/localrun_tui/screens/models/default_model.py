"""Making a model on disk the default: it answers when none is named, and the app begins with it."""

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from localrun.base.settings import write_setting
from localrun.hub.disk.library import mark_used
from localrun_tui.screens.models.model_rows import DiskRow
from localrun_tui.screens.models.verdicts import cannot_be_run
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.toast import toast, toast_error


def make_default(screen: Screen[Any], row: DiskRow, changed: Callable[[], Any]) -> None:
    """Write it down and call `changed`; one that cannot be run is refused with the reason."""
    name, path = row.model.name, row.model.path
    if row.obstacle:
        toast(screen, f"{name} is not made the default", cannot_be_run(row.obstacle, name), "warning")
        return

    def write(task: Task) -> None:
        write_setting("model", name)
        mark_used(path)

    run_in_background(screen, write, lambda _: changed(), lambda error: toast_error(screen, error))
