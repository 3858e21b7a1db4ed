"""`localrun top` on a terminal: one screen."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from localrun.server.monitor.client import MonitorClient
from localrun_tui.crash import PlainEnd
from localrun_tui.screens.requests.request_sources import RemoteRequests
from localrun_tui.screens.requests.requests_screen import RequestsScreen
from localrun_tui.themes import put_theme_on


class TopApp(PlainEnd):
    """Ends with its screen."""

    TITLE = "localrun top"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,ctrl+c,ctrl+q", "quit", "Quit", id="top.quit", key_display="q")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, client: MonitorClient, theme: str | None = None) -> None:
        super().__init__()
        self._client = client
        put_theme_on(self, theme)

    def on_mount(self) -> None:
        self.push_screen(RequestsScreen(RemoteRequests(self._client)), lambda _: self.exit())
