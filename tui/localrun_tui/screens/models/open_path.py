"""Models by path: a file or a folder that is in none of the places that are searched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.screen import Screen

from localrun.base.errors import LocalrunError
from localrun.hub.disk.stored import StoredModel, stored_at
from localrun.hub.resolve import resolve_all
from localrun_tui.screens.dialogs.ask import AskText
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.model_path_field import is_typed_path
from localrun_tui.widgets.toast import toast_error

Found = Callable[[list[StoredModel]], object]


def how_to_open(text: str) -> str:
    """The keys for a typed path, of which a part may be typed only; empty for words."""
    return "A path: Tab completes it, Enter opens it" if is_typed_path(text) else ""


def ask_for_path(screen: Screen[Any], found: Found, typed: str = "~/") -> None:
    """Ask for a path, and call `found` with the models there; where there is none, say why, and ask again."""

    def answered(path: str | None) -> None:
        if path:
            find_at(screen, path if is_typed_path(path) else f"./{path}", found, lambda: again(path))

    def again(path: str) -> None:
        if screen.is_current:
            ask_for_path(screen, found, path)

    about = "a .gguf, or a folder with config.json and .safetensors; it stays in this list once it was loaded"
    screen.app.push_screen(AskText("Open a file or a folder", typed, about, "opens it", is_path=True), answered)


def find_at(screen: Screen[Any], path: str, found: Found, failed: Callable[[], object] = lambda: None) -> None:
    """Call `found` with the models at a path; what is no model says why, and `failed` is called."""

    def fail(error: LocalrunError) -> None:
        failed()
        toast_error(screen, error)

    run_in_background(screen, lambda task: _models_at(path.strip()), found, fail)


def _models_at(path: str) -> list[StoredModel]:
    """All models of a folder, or the one that a path names. Raises NotFoundError where there is none."""
    place = Path(path).expanduser()
    inside = stored_at(place) if place.is_dir() else []
    return [model for model in inside if not model.helper] or resolve_all(path)
