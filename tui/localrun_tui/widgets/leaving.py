"""Screens that are left once, however often a key is pressed before they are gone."""

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType


class Page(Screen[ScreenResultType]):
    """A screen in the place of the chat. At a second `dismiss`, Textual's own would take away the screen below, or end
    the app."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self in self.app.screen_stack else AwaitComplete()


class Dialog(Page[ScreenResultType], ModalScreen[ScreenResultType]):
    """A screen over another one."""
