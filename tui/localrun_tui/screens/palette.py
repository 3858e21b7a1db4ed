"""The command palette."""

from contextlib import suppress
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.command import CommandList, CommandPalette, Hit, Hits
from textual.system_commands import SystemCommandsProvider
from textual.widgets import Input
from textual.worker import Worker, WorkerError, WorkType

from localrun_tui.screens.chat.suggestions import describes
from localrun_tui.widgets.key_hint import KeyHint


class Palette(CommandPalette):
    """Textual's own, in the style of other dialogs. A search which begins while it is left does not end the app."""

    CSS_PATH = "palette.tcss"

    def __init__(self) -> None:
        super().__init__([DescribedCommands], id="--command-palette")
        self._search: Worker[Any] | None = None  # the newest

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield KeyHint("words find a command, ↑↓ and Enter choose, Escape leaves")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No pages of a list that has no room yet: Textual knows none of its lines, and fails."""
        if action == "command_list" and parameters in (("page_up",), ("page_down",)):
            return bool(self.query_one(CommandList).scrollable_content_region)
        return super().check_action(action, parameters)

    def run_worker(self, work: WorkType[Any], *arguments: Any, **options: Any) -> Worker[Any]:
        worker = super().run_worker(work, *arguments, **{**options, "exit_on_error": False})
        self._search = worker
        return worker

    @on(Input.Submitted)
    async def _end_search(self) -> None:
        """Let Enter, which Textual handles next, choose among what was found for all that is typed."""
        if self._search is not None:
            with suppress(WorkerError):
                await self._search.wait()


class DescribedCommands(SystemCommandsProvider):
    """Commands whose names have what is typed, else those that are described with it, as behind a slash."""

    async def search(self, query: str) -> Hits:
        is_named = False
        async for hit in super().search(query):
            is_named = True
            yield hit
        for name, words, callback, *_ in () if is_named else self.app.get_system_commands(self.screen):
            if describes(words, query.strip()):
                yield Hit(1.0, name, callback, help=words)
