"""Limits that uvicorn lacks: number of connections, and time for what a client sends."""

import asyncio
from collections import Counter
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 1_024
MAX_PER_ADDRESS = 64  # from another machine
HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0
STALL_SECONDS = 30.0  # for a client to take what was sent
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedConnection(H11Protocol):
    """One connection; closed when the headers of a request take too long, or its body, or when nothing is read."""

    open_from: ClassVar[Counter[str]] = Counter()  # of this process, by address

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._expected: object = None  # the part of a request that the deadline is for
        self._stall: asyncio.TimerHandle | None = None
        self._address = self.client[0] if self.client else ""
        self.open_from[self._address] += 1
        is_far = self._address not in ("", "127.0.0.1", "::1")
        if len(self.connections) > MAX_CONNECTIONS or (is_far and self.open_from[self._address] > MAX_PER_ADDRESS):
            transport.write(_FULL)
            transport.close()
        else:
            self._expect(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect(self.conn.their_state)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)  # to close it would wait for the client

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._stop_stall()
        self.open_from[self._address] -= 1
        if not self.open_from[self._address]:
            del self.open_from[self._address]
        super().connection_lost(exc)

    def _expect(self, part: object) -> None:
        """Set the deadline of what the client has to send next, once; none after the whole request."""
        if part is self._expected:
            return
        self._stop_clock()
        self._expected = part
        if part in (h11.IDLE, h11.SEND_BODY):
            seconds = HEADER_SECONDS if part is h11.IDLE else BODY_SECONDS
            self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _stop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
