"""Sources of the requests on the screen: the app's own server, or a running one."""

import asyncio
from collections.abc import Sequence

from localrun.base.errors import EngineError, NotFoundError, UsageError
from localrun.server.monitor.client import MonitorClient, attached_names
from localrun.server.monitor.live import LiveRequest
from localrun.server.monitor.rows import RequestRow, rows_of
from localrun_tui.state.app_server import AppServer


class OwnRequests:
    """Requests of the app's server."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    @property
    def address(self) -> str:
        return self._server.url or "off"

    @property
    def attached(self) -> Sequence[str]:
        return self._server.programs

    async def rows(self) -> Sequence[RequestRow]:
        if not self._server.url:
            raise UsageError("Other programs cannot ask this model.", "/serve in a chat lets them.")
        return rows_of(self._server.requests)

    async def cancel(self, number: int) -> None:
        self._live(number).cancel()

    async def raise_priority(self, number: int) -> None:
        self._live(number).raise_priority()

    def _live(self, number: int) -> LiveRequest:
        live = next((live for live in self._server.requests if live.number == number), None)
        if live is None:
            raise NotFoundError("that request is over")
        return live


class RemoteRequests:
    """Requests of a running server."""

    def __init__(self, client: MonitorClient) -> None:
        self._client = client
        self.attached: Sequence[str] = ()

    @property
    def address(self) -> str:
        return self._client.address

    async def rows(self) -> Sequence[RequestRow]:
        state = await asyncio.to_thread(self._client.state)
        self.attached = attached_names(state)
        try:
            return [RequestRow(**row) for row in state.get("requests", ())]
        except TypeError:
            raise EngineError("that server is of another version", "start it again") from None

    async def cancel(self, number: int) -> None:
        await asyncio.to_thread(self._client.cancel, number)

    async def raise_priority(self, number: int) -> None:
        await asyncio.to_thread(self._client.raise_priority, number)
