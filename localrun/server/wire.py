"""The connection to one client: sending, and noticing that it left."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from starlette.types import Receive, Send

from localrun.base.events import ModelInfo
from localrun.server.inference import Codec
from localrun.server.refusal import cancelled

PING_SECONDS = 4.0  # without a word; five are promised
T = TypeVar("T")


class ClientLeftError(Exception):
    """The client has left."""


class Wire:
    """The response to one client. Headers go out with the first bytes."""

    def __init__(self, receive: Receive, send: Send, codec: Codec, is_stream: bool) -> None:
        self._send, self._codec, self._is_stream = send, codec, is_stream
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[Exception] = self._loop.create_future()  # why the wait is over
        self._listening = asyncio.ensure_future(self._until_gone(receive))
        self._awaited = asyncio.Event()  # what `until` waits for
        self._written = self._loop.time()
        self._clock = self._loop.call_later(PING_SECONDS, self._look)
        self.info: ModelInfo | None = None  # of the model that answers, once it is there
        self.has_begun = False

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Wait for `awaited`, sending pings. Raises ClientLeftError as soon as the client has gone, and what ended the
        request as soon as something has."""
        task = asyncio.ensure_future(awaited)
        try:
            while True:
                done, _ = await asyncio.wait(
                    (task, self._over), timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if task in done:
                    return task.result()
                if self._over in done:
                    raise self._over.result()
                await self._ping()
        finally:
            task.cancel()

    async def until(self, there: asyncio.Event) -> None:
        """Wait until `there` is set: by whoever has something to send, or because a ping is due. Raises as `wait` does,
        but without a task and a timer, which every piece of text would wait for."""
        self._awaited = there
        if not self._over.done():
            await there.wait()
        if self._over.done():
            raise self._over.result()

    async def ping_if_due(self) -> None:
        """Send a sign of life, if nothing was sent for long."""
        if self._quiet_seconds() >= PING_SECONDS:
            await self._ping()

    def _look(self) -> None:
        """End the wait of `until` for a ping that is due."""
        left = PING_SECONDS - self._quiet_seconds()
        if left <= 0:
            self._awaited.set()
        self._clock = self._loop.call_later(left if left > 0 else PING_SECONDS, self._look)

    def _quiet_seconds(self) -> float:
        return self._loop.time() - self._written

    def cancel(self) -> None:
        """End the wait for an answer that is not wanted any more."""
        self.end(cancelled())

    def end(self, why: Exception) -> None:
        """End the wait for an answer, with the reason."""
        if not self._over.done():
            self._over.set_result(why)
            self._awaited.set()

    async def begin(self) -> None:
        """Send the headers and the head of a stream, once."""
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
        """Send the whole answer at once."""
        usual = {"content-type": "application/json", "content-length": str(len(data))}
        await self._head(*((name.encode(), value.encode()) for name, value in {**usual, **headers}.items()))
        await self._write(data, last=True)

    def close(self) -> None:
        self._listening.cancel()
        self._clock.cancel()

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end(ClientLeftError())

    async def _ping(self) -> None:
        if self._is_stream:
            await self.begin()
            await self._write(self._codec.ping())

    async def _head(self, *headers: tuple[bytes, bytes]) -> None:
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _write(self, data: bytes, last: bool = False) -> None:
        """Send. This waits for a client that is slow, and whose connection ends where it takes nothing for long."""
        if not data and not last:
            return
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        self._written = self._loop.time()
        if self._listening.done():
            raise ClientLeftError
