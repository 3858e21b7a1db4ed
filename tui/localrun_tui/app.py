"""The app: screens, themes, keys, and the session they share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import BindingType

from .chat_screen import ChatScreen
from .choice import Choice
from .session import Session

if TYPE_CHECKING:
    from localrun.chat.journal import ChatStore

    from .model_slot import OpenClient


class LocalrunApp(App[None]):
    """`choose` finds the model to begin with, on a thread; None asks the user."""

    TITLE = "localrun"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        open_client: "OpenClient",
        open_store: "Callable[[], ChatStore]",
        choose: Callable[[], Choice | None] = lambda: None,
    ) -> None:
        super().__init__()
        self.session = Session(open_client, open_store, self._tell)
        self._choose = choose
        self._chat_screen = ChatScreen(self.session)

    def on_mount(self) -> None:
        self.push_screen(self._chat_screen)

    def _tell(self, message: object) -> None:
        self._chat_screen.post_message(message)  # type: ignore[arg-type]

    def on_unmount(self) -> None:
        self.session.close()
