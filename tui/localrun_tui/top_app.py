"""`localrun top` on a terminal: one screen."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from localrun.server.monitor_client import MonitorClient
from localrun_tui.crash import PlainEnd
from localrun_tui.screens.requests.request_sources import RemoteRequests
from localrun_tui.screens.requests.requests_screen import RequestsScreen
from localrun_tui.themes import DARK, LIGHT, default_theme


class TopApp(PlainEnd):
    """Ends with its screen."""

    TITLE = "localrun top"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,ctrl+c,ctrl+q", "quit", "Quit", id="top.quit", key_display="q")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, client: MonitorClient) -> None:
        super().__init__()
        self._client = client
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = default_theme()

    def on_mount(self) -> None:
        self.push_screen(RequestsScreen(RemoteRequests(self._client)), lambda _: self.exit())
