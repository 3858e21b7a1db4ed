"""Entries of the menu above the editor, for the typed text."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.widget import Widget
from textual.worker import WorkType

from localrun_tui.screens.chat.argument_menu import suggested_arguments, takes_argument
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.file_menu import FileMenu, behind_at, dropped_offer
from localrun_tui.screens.chat.suggestions import SuggestionMenu, suggested_commands

_AT_REST = 0.08  # seconds without a key before values or files are looked up
_GROUP = "files"


class MenuFiller:
    """Commands are offered at once; values and files, which a thread looks up, when keys are at rest, or when one
    needs them. `owner` runs the work; while `is_edited`, there are no commands."""

    def __init__(self, owner: Widget, editor: Editor, menu: SuggestionMenu, is_edited: Callable[[], bool]) -> None:
        self._owner, self._editor, self._menu, self._is_edited = owner, editor, menu, is_edited
        self._files = FileMenu(Path.cwd())
        self._found_for: str | None = None  # the text that was looked up for the menu

    @property
    def _looked_up(self) -> str | None:
        """The text whose values or files are looked up; None where there are none of it."""
        text, typed = self._command, behind_at(self._editor.before_cursor)
        return text if takes_argument(text) else None if typed is None else f"@{typed}"

    @property
    def _command(self) -> str:
        return "" if self._is_edited() else self._editor.text

    @property
    def is_behind(self) -> bool:
        """Whether the menu is not yet that of the text."""
        return self._looked_up not in (None, self._found_for)

    def fill(self) -> None:
        """Offer what fits the text, now or soon."""
        if self.is_behind:
            look_up: WorkType[None] = partial(self._look_up, _AT_REST)
            self._owner.run_worker(look_up, group=_GROUP, exclusive=True)
        elif self._looked_up is None:
            self._found_for = None
            self._menu.show(suggested_commands(self._command))

    async def catch_up(self) -> None:
        """Offer what fits the text as it is: keys may have come since. What was dropped stays offered."""
        if self.is_behind:
            self._owner.workers.cancel_group(self._owner, _GROUP)
            await self._look_up()
        elif self._looked_up is None and not (self._menu.chosen and self._menu.chosen.files):
            self.fill()

    async def _look_up(self, pause: float = 0.0) -> None:
        await asyncio.sleep(pause)
        if (wanted := self._looked_up) is not None:
            look = suggested_arguments if takes_argument(wanted) else self._files.offers
            found = await asyncio.to_thread(look, wanted)
            if self._looked_up == wanted:
                self._found_for = wanted
                self._menu.show(found)

    def fill_dropped(self, text: str) -> None:
        """Offer to attach what was pasted, as a terminal does with files that are dropped on it."""
        look_up: WorkType[None] = partial(self._look_up_dropped, text)
        self._owner.run_worker(look_up, group=_GROUP, exclusive=True)

    async def _look_up_dropped(self, text: str) -> None:
        offers = await asyncio.to_thread(dropped_offer, text)
        if offers and self._editor.text_before_cursor.rstrip().endswith(text.strip()):
            self._menu.show(offers)
