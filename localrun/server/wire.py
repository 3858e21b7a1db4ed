"""The connection to one client: what is sent on it, and whether somebody is still there."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.types import Receive, Send

from localrun.base.events import ModelInfo
from localrun.server.inference import Codec
from localrun.server.refusal import cancelled

PING_SECONDS = 4.0  # without a byte; five are promised
STALL_SECONDS = 30.0  # for a client to take what was sent
T = TypeVar("T")


class ClientLeftError(Exception):
    """The client has gone."""


class Wire:
    """The response to one client. Headers go out with the first bytes."""

    def __init__(self, receive: Receive, send: Send, codec: Codec, is_stream: bool) -> None:
        self._send, self._codec, self._is_stream = send, codec, is_stream
        self._loop = asyncio.get_running_loop()
        self._bell: asyncio.Future[None] = self._loop.create_future()
        self._over: Exception | None = None  # why nobody waits any more
        self._last_sent = self._loop.time()
        self._listening = asyncio.ensure_future(self._until_gone(receive))
        self.info: ModelInfo | None = None  # of the model that answers, once it is there
        self.has_begun = False

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Wait for something, as `until` does."""
        task = asyncio.ensure_future(awaited)
        task.add_done_callback(lambda _: self.ring())
        try:
            await self.until(task.done)
            return task.result()
        finally:
            task.cancel()

    async def until(self, is_there: Callable[[], bool]) -> None:
        """Wait for something that rings, with pings meanwhile. Raises ClientLeftError as soon as the client has gone,
        and Refusal as soon as the request is cancelled."""
        if is_there():
            await asyncio.sleep(0)  # whoever is faster than its client lets others take their turn
        while not is_there():
            if self._over is not None:
                raise self._over
            self._bell = self._loop.create_future()
            clock = self._loop.call_at(self._last_sent + PING_SECONDS, self.ring) if self._is_stream else None
            try:
                await self._bell
            finally:
                if clock is not None:
                    clock.cancel()
            if clock is not None and self._loop.time() >= clock.when() and not is_there():
                await self.begin()
                await self._write(self._codec.ping())

    def ring(self) -> None:
        """Have `until` look again. On the event loop."""
        if not self._bell.done():
            self._bell.set_result(None)

    def cancel(self) -> None:
        """End the wait for an answer that nobody wants any more."""
        self._end(cancelled())

    async def begin(self) -> None:
        """Send the headers of a stream, and its head, unless they have been."""
        if self.has_begun:
            return
        await self._head(
            (b"content-type", self._codec.media_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        )
        await self._write(self._codec.begin(self.info))

    async def stream(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of a stream."""
        await self.begin()
        await self._write(data, last)

    async def whole(self, data: bytes, headers: Mapping[str, str]) -> None:
        """Send everything at once, for a client that asked for no stream."""
        usual = {"content-type": "application/json", "content-length": str(len(data))}
        await self._head(*((name.encode(), value.encode()) for name, value in {**usual, **headers}.items()))
        await self._write(data, last=True)

    def close(self) -> None:
        self._listening.cancel()

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._end(ClientLeftError())

    def _end(self, why: Exception) -> None:
        self._over = self._over or why
        self.ring()

    async def _head(self, *headers: tuple[bytes, bytes]) -> None:
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _write(self, data: bytes, last: bool = False) -> None:
        """A client that does not take it in time has left."""
        if not data and not last:
            return
        message: dict[str, Any] = {"type": "http.response.body", "body": data, "more_body": not last}
        self._last_sent = self._loop.time()
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self._send(message)
        except TimeoutError:
            raise ClientLeftError from None
