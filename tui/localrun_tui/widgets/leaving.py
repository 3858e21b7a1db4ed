"""Screens that are left once, however often a key is pressed before they are gone."""

from typing import ClassVar

from textual import on
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.events import Mount, ScreenResume
from textual.screen import ModalScreen, Screen, ScreenResultType


class Page(Screen[ScreenResultType]):
    """A screen in the place of the chat. At a second `dismiss`, Textual's own would take away the screen below, or end
    the app; while another screen covers this one, it would take that away, so this one is left after it, and not before
    its own widgets are there. Toasts about the screen before it are gone: they would cover this one."""

    _is_left = False
    _late: tuple[ScreenResultType | None, ...] = ()  # the answer, until the screen above is gone

    @on(Mount)
    def _end_toasts(self) -> None:
        self.app.clear_notifications()
        self.call_after_refresh(self._leave_late)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        if not self._is_left and self in self.app.screen_stack:
            self._is_left = True
            if self.app.screen is self and self.is_mounted:
                return super().dismiss(result)
            self._late = (result,)
        return AwaitComplete()

    @on(ScreenResume)
    def _leave_late(self) -> None:
        if self._late and self.app.screen is self and self.is_mounted:
            late, self._late = self._late, ()
            super().dismiss(*late)


class Dialog(Page[ScreenResultType], ModalScreen[ScreenResultType]):
    """A screen over another one. Textual keeps the app's own keys from it: those to stop and to quit it has again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "app.interrupt", show=False, id="dialog.interrupt"),
        Binding("ctrl+q", "app.quit", show=False, id="dialog.quit"),
    ]
