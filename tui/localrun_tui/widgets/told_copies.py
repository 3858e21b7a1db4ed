"""Copies to the clipboard that are said: nothing else on the screen would tell of one."""

from typing import Any

from textual.app import App

from localrun.base.sanitize import clean

_SHOWN = 30  # characters of what was copied


class ToldCopies(App[Any]):
    """A copy, from a field, of a selection or by a key, is shown for a moment by its beginning.

    What was selected on the screen is so no longer: the next Ctrl+C stops the answer, as it does everywhere.
    """

    def copy_to_clipboard(self, text: str) -> None:
        super().copy_to_clipboard(text)
        self.screen.clear_selection()
        first, *more = text.strip().split("\n")
        shown = clean(first, keep_newlines=False)
        shown = f"{shown[:_SHOWN]}…" if more or len(shown) > _SHOWN else shown
        self.notify(shown, title="copied", timeout=2, markup=False)
