"""The command palette."""

from typing import Any

from textual.command import CommandPalette
from textual.worker import Worker, WorkType


class Palette(CommandPalette):
    """Textual's own, except that a search which begins while it is being left does not end the app."""

    def run_worker(self, work: WorkType[Any], *arguments: Any, **options: Any) -> Worker[Any]:
        return super().run_worker(work, *arguments, **{**options, "exit_on_error": False})
