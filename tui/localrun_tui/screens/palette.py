"""The command palette."""

from typing import Any

from textual.app import ComposeResult
from textual.command import CommandList, CommandPalette
from textual.worker import Worker, WorkType

from localrun_tui.widgets.key_hint import KeyHint


class Palette(CommandPalette):
    """Textual's own, in the style of other dialogs. A search which begins while it is left does not end the app."""

    CSS_PATH = "palette.tcss"

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield KeyHint("words find a command, ↑↓ and Enter choose, Escape leaves")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No pages of a list that has no room yet: Textual knows none of its lines, and fails."""
        if action == "command_list" and parameters in (("page_up",), ("page_down",)):
            return bool(self.query_one(CommandList).scrollable_content_region)
        return super().check_action(action, parameters)

    def run_worker(self, work: WorkType[Any], *arguments: Any, **options: Any) -> Worker[Any]:
        return super().run_worker(work, *arguments, **{**options, "exit_on_error": False})
