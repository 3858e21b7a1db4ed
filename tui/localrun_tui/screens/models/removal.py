"""Delete a model from the disk, after showing its files and the space they free."""

from collections.abc import Callable
from os.path import realpath
from typing import Any

from textual.screen import Screen

from localrun.base.errors import LocalrunError
from localrun.base.units import gib
from localrun.hub.disk.aliases import with_aliases
from localrun.hub.disk.library import scan
from localrun.hub.disk.removal import Removal, plan_removal, remove
from localrun.hub.disk.stored import StoredModel
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.toast import toast, toast_error

_SHOWN_FILES = 6


def ask_to_remove(screen: Screen[Any], model: StoredModel, loaded: str, removed: Callable[[], Any]) -> None:
    """Plan, ask once, remove, and call `removed`. `loaded` is the path of the model in use, which stays."""
    name = f"{model.name} {model.precision}"

    def fail(error: LocalrunError) -> None:
        toast_error(screen, error)

    def plan(task: Task) -> tuple[list[StoredModel], Removal]:
        models = with_aliases(model, scan())  # the list shows a file that has two names once
        return models, plan_removal(models)

    def ask(planned: tuple[list[StoredModel], Removal]) -> None:
        models, removal = planned
        files = [path.name for path in removal.files[:_SHOWN_FILES]]
        more = len(removal.files) - len(files)
        names = "\n".join([*files, f"and {more} more"] if more else files)
        folder = removal.files[0].parent if removal.files else model.path.parent
        facts = [("frees", gib(removal.freed)), ("files", names), ("in", str(folder))]
        packed = sum(one.nbytes for one in removal.packed)
        facts += [("and", f"{gib(packed)} of packed weights")] if packed else []
        facts += [("stays", "\n".join(removal.left))] if removal.left else []
        facts += [("in use", f"by {removal.in_use}")] if removal.in_use else []
        screen.app.push_screen(
            ConfirmScreen(f"Delete {name} from the disk?", facts, "Delete", "Keep", danger=True),
            lambda yes: execute(models, removal) if yes else None,
        )

    def execute(models: list[StoredModel], removal: Removal) -> None:
        def done(was_default: bool) -> None:
            no_default = " It was the default model: there is none now." if was_default else ""
            toast(screen, f"{name} is deleted", f"{gib(removal.freed)} are free again.{no_default}")
            removed()

        def failed(error: LocalrunError) -> None:
            fail(error)
            removed()  # some of it may be gone

        run_in_background(screen, lambda task: remove(removal, models), done, failed)

    if loaded and realpath(loaded) == realpath(model.path):
        toast(screen, f"{name} is in use", "Load another model first.", "warning")
    else:
        run_in_background(screen, plan, ask, fail)
