"""Deleting a model from the disk: what goes and what that frees is said first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.screen import Screen

from localrun.base.errors import LocalrunError
from localrun.base.units import gib
from localrun.hub.removal import Removal, plan_removal, remove
from localrun.hub.stored import StoredModel

from .background import run_in_background
from .confirm import ConfirmScreen
from .toast import toast, toast_error

_SHOWN_FILES = 6


def ask_to_remove(screen: Screen[Any], model: StoredModel, loaded: str, removed: Callable[[], Any]) -> None:
    """Plan, ask once, remove, and call `removed`. `loaded` is the path of the model in use, which stays."""
    name = f"{model.name} {model.precision}"

    def fail(error: LocalrunError) -> None:
        toast_error(screen, error)

    def ask(plan: Removal) -> None:
        files = [path.name for path in plan.files[:_SHOWN_FILES]]
        more = len(plan.files) - len(files)
        names = "\n".join([*files, f"and {more} more"] if more else files)
        facts = [("frees", gib(plan.freed)), ("files", names), ("in", str(_folder(plan, model)))]
        facts += [("stays", "\n".join(plan.left))] if plan.left else []
        screen.app.push_screen(
            ConfirmScreen(f"Delete {name} from the disk?", facts, "Delete", "Keep", danger=True),
            lambda yes: execute(plan) if yes else None,
        )

    def execute(plan: Removal) -> None:
        def done(was_default: bool) -> None:
            no_default = " It was the default model: there is none now." if was_default else ""
            toast(screen, f"{name} is deleted", f"{gib(plan.freed)} are free again.{no_default}")
            removed()

        run_in_background(screen, lambda task: remove(plan, [model]), done, fail)

    if loaded and Path(loaded) == model.path:
        toast(screen, f"{name} is in use", "Load another model first.", "warning")
    else:
        run_in_background(screen, lambda task: plan_removal([model]), ask, fail)


def _folder(plan: Removal, model: StoredModel) -> Path:
    return plan.files[0].parent if plan.files else model.path.parent
