"""The chat: what was said, what is being said, and where to type."""

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer, Static

from .session import Session


class ChatScreen(Screen[None]):
    """One chat at a time."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def compose(self) -> ComposeResult:
        yield Static("localrun")
        yield Footer()
