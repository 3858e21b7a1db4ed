"""Models by path: a file or a folder that is in none of the places that are searched."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.screen import Screen

from localrun.formats.gguf_names import is_gguf
from localrun.hub.resolve import resolve_all
from localrun.hub.stored import StoredModel, stored_at
from localrun_tui.screens.dialogs.ask import AskText
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.toast import toast_error

Found = Callable[[list[StoredModel]], object]


def looks_like_path(text: str) -> bool:
    """Whether what is typed into a list of models is meant as a path."""
    return text.startswith(("/", "~", "./", "../")) or os.path.isabs(text) or is_gguf(text)


def how_to_open(text: str) -> str:
    """The key that opens a typed path; empty for words."""
    return f"Enter opens {text.strip()}" if looks_like_path(text) else ""


def ask_for_path(screen: Screen[Any], found: Found) -> None:
    """Ask for a path, and call `found` with the models there."""

    def answered(path: str | None) -> None:
        if path:
            find_at(screen, path if looks_like_path(path) else f"./{path}", found)

    hint = "a .gguf, or a folder with config.json and .safetensors; it stays in this list once it was loaded"
    screen.app.push_screen(AskText("Open a file or a folder", "~/", hint), answered)


def find_at(screen: Screen[Any], path: str, found: Found) -> None:
    """Call `found` with the models at a path; what is no model says why."""
    run_in_background(screen, lambda task: _models_at(path.strip()), found, lambda error: toast_error(screen, error))


def _models_at(path: str) -> list[StoredModel]:
    """All models of a folder, or the one that a path names. Raises NotFoundError where there is none."""
    place = Path(path).expanduser()
    inside = stored_at(place) if place.is_dir() else []
    return [model for model in inside if not model.helper] or resolve_all(path)
