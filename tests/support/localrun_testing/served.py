"""A server on a free port of this machine, in a thread, over any client."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from starlette.applications import Starlette

from localrun.client.choice import ModelChoice, builtin
from localrun.client.interface import EngineClient
from localrun.client.model_slot import ModelSlot
from localrun.server.listen import HttpServer, address_of, bind
from localrun.server.models import ModelHost
from localrun.server.options import ServerOptions
from localrun.server.service import Service
from localrun.server.shared_engine import sharing
from localrun_testing.waiting import PATIENCE, until

ANY_PORT = ServerOptions(port=0)
for _part in ("connect", "read", "write", "pool"):  # as long as a busy machine may take: else it is 5 seconds
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _part, PATIENCE)


@dataclass
class Served:
    """A server under test."""

    url: str
    service: Service
    app: Starlette
    engine: str  # path of the socket at which it shares its engine
    end: Callable[[], None]  # have it end


@contextmanager
def serving(open_client: Callable[[ModelChoice], EngineClient], options: ServerOptions = ANY_PORT) -> Iterator[Served]:
    """The server, until the block is left. `open_client` gives the engine of a model."""
    ready: list[Served] = []
    servers: list[HttpServer] = []

    async def serve() -> None:
        listener = bind(options)
        slot = ModelSlot(lambda choice, progress: open_client(choice))
        service = Service(ModelHost(slot, builtin(), options), options)
        server = HttpServer(service)
        servers.append(server)

        with sharing(service) as engine:
            ready.append(Served(address_of(listener), service, server.app, engine, server.stop))
            await server.serve([listener])
        await service.models.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    until(lambda: bool(servers) and servers[0].started)
    try:
        yield ready[0]
    finally:
        servers[0].stop()
        thread.join(PATIENCE)
