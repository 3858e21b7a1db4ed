"""The server of the app's model in a few characters, in the first line while it runs."""

from textual.widgets import Static

from localrun_tui.state.app_server import AppServer
from localrun_tui.widgets.columns import say

_EVERY = 0.5  # seconds between two looks


class ServerBadge(Static):
    """`served :8231 · 2 asking`. It goes when the server ends."""

    DEFAULT_CSS = "ServerBadge { width: auto; height: 1; color: $text-accent; }"

    def __init__(self, server: AppServer) -> None:
        super().__init__()
        self._server = server
        self._shown = ""

    def on_mount(self) -> None:
        self._look()
        self.set_interval(_EVERY, self._look)

    def _look(self) -> None:
        if not self._server.url:
            self.remove()
        elif (text := badge_text(self._server)) != self._shown:
            self._shown = text
            self.update(say(text))

    async def on_click(self) -> None:
        await self.run_action("app.requests")


def badge_text(server: AppServer) -> str:
    """The port, and the number of requests under way."""
    asking = f" · {len(server.requests)} asking" if server.requests else ""
    return f"served :{server.url.rpartition(':')[2]}{asking}"
