"""Screens that are left once, however often a key is pressed before they are gone."""

from textual import on
from textual.await_complete import AwaitComplete
from textual.events import Mount
from textual.screen import ModalScreen, Screen, ScreenResultType


class Page(Screen[ScreenResultType]):
    """A screen in the place of the chat. At a second `dismiss`, Textual's own would take away the screen below, or end
    the app. Toasts about the screen before it are gone: they would cover this one."""

    @on(Mount)
    def _end_toasts(self) -> None:
        self.app.clear_notifications()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self in self.app.screen_stack else AwaitComplete()


class Dialog(Page[ScreenResultType], ModalScreen[ScreenResultType]):
    """A screen over another one."""
