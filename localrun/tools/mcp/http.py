"""Connections to servers with a URL: limited answers, and no redirects to other origins.

The transport of `mcp` enforces that redirects stay within the origin. The address itself is the user's choice, and may
be in a private network.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from localrun.base.units import gib
from localrun.tools.mcp.limits import MAX_MESSAGE

CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0  # between two pieces of an answer; the time of the whole call has its own limit

_REASONS = {
    401: "it wants a login: give a token in `headers`",
    403: "it refuses this login",
    404: "nothing is at this URL",
}


class UrlServer:
    """A server at a URL. `problem` is its last refusal; empty where there was none."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {**headers, "Accept-Encoding": "identity"}  # packed answers have no bound
        self.problem = ""
        self.last_words = ""

    @property
    def has_ended(self) -> bool:
        """Whether its last answer was a refusal: the server may have forgotten the session."""
        return bool(self.problem)

    def connect(self) -> AbstractAsyncContextManager[TransportStreams]:
        """The streams of its messages."""
        client = httpx2.AsyncClient(
            headers=self._headers,
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=READ_SECONDS),
            event_hooks={"response": [self._bound]},
        )
        return streamable_http_client(self._url, http_client=client, max_sse_event_size=MAX_MESSAGE)

    async def _bound(self, response: httpx2.Response) -> None:
        """Check a response before its body is read."""
        status = response.status_code
        self.problem = f"HTTP {status}: {_REASONS.get(status, response.reason_phrase)}" if status >= 400 else ""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_endless = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        is_packed = response.headers.get("Content-Encoding", "identity").lower() != "identity"
        limit = None if is_endless else MAX_MESSAGE  # the transport of mcp bounds each event
        response.stream = _BoundedStream(response.stream, 0 if is_packed else limit)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int | None) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for piece in self._stream:
            n_bytes += len(piece)
            if self._limit is not None and n_bytes > self._limit:
                what = f"of more than {gib(self._limit)}" if self._limit else "that is packed, which was not asked for"
                raise httpx2.StreamError(f"it sent an answer {what}")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
