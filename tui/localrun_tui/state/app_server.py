"""The server of the app's model for other programs, while the app runs."""

import asyncio
from typing import TYPE_CHECKING

from localrun.base.errors import UsageError

if TYPE_CHECKING:
    from socket import socket

    from localrun.client.model_slot import ModelSlot
    from localrun.server.listen import HttpServer
    from localrun.server.monitor.live import LiveRequest
    from localrun.server.service import Service


class AppServer:
    """Off until it is started, when its imports are made."""

    def __init__(self, slot: "ModelSlot") -> None:
        self._slot = slot
        self._server: HttpServer | None = None
        self._service: Service | None = None
        self._running: asyncio.Task[None] | None = None
        self.url = ""  # empty while it is off

    @property
    def requests(self) -> "list[LiveRequest]":
        """Requests of other programs under way."""
        return [] if self._service is None else list(self._service.registry.requests.values())

    @property
    def programs(self) -> list[str]:
        """Programs attached to the app's engine, with their processes."""
        return [] if self._service is None else [str(program) for program in self._service.programs]

    async def start(self, port: int) -> str:
        """Listen on this machine; gives the address. 0 takes any free port. Raises UsageError where that cannot be."""
        if self.url:
            raise UsageError(f"this model is served already, at {self.url}", "/serve stop ends that")
        from localrun.server.listen import HttpServer, address_of, bind
        from localrun.server.options import ServerOptions
        from localrun.server.service import Service
        from localrun.server.shared_model import SharedModel

        options = ServerOptions(port=port, keep_alive=None)
        listener = await asyncio.to_thread(bind, options)
        self._service = Service(SharedModel(self._slot, options), options)
        self._server, self.url = HttpServer(self._service), address_of(listener)
        self._running = asyncio.ensure_future(self._serve(self._server, self._service, listener))
        return self.url

    async def stop(self, at_once: bool = False) -> None:
        """Let the answers under way end, for ten seconds at most, or `at_once`. Nothing happens while it is off."""
        server, running = self._server, self._running
        if server is None or running is None:
            return
        server.stop()
        if at_once:
            server.stop()
        await running

    async def _serve(self, server: "HttpServer", service: "Service", listener: "socket") -> None:
        from localrun.client.attach.owner import announced
        from localrun.server.shared_engine import sharing

        try:
            with sharing(service) as engine, announced(self.url, "", engine):
                await server.serve([listener])
        finally:
            self._server = self._service = self._running = None
            self.url = ""


def port_in(text: str) -> int:
    """The port of `/serve PORT`; the usual one for none. Raises UsageError."""
    from localrun.server.options import DEFAULT_PORT, port_number

    try:
        return port_number(text) if text else DEFAULT_PORT
    except ValueError as error:
        raise UsageError(f"{text} is no port", str(error)) from None
