"""HTTP for the hub, with limits on what a server can make localrun do.

Nothing is opened offline. The token goes to the configured origin only. Redirects are followed by hand: never from
https to http, and never to a private address that the hub's own name does not resolve to. Compressed bodies are
refused, since none was asked for. Bodies read whole have a limit in bytes and in seconds.
"""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urljoin, urlsplit

from localrun.base.errors import HubError
from localrun.hub.network.access import Access
from localrun.hub.network.connection import MIRROR_HINT, Connection, break_off, deadline, reason_of
from localrun.hub.network.url_origin import Origin, host_of, may_see_token, origin_of

LONGEST_WAIT = 60.0  # that a hub which is too busy may ask for; a person would rather know
MAX_BODY = 16 << 20
MAX_REDIRECTS = 6
_PIECE_BYTES = 64 << 10
_MAX_CRUMBS, _CRUMB_BYTES = 10_000, 64  # from this many pieces on, a body has to average this length
USER_AGENT = "localrun"
_REDIRECTS = (301, 302, 303, 307, 308)

Headers = http.client.HTTPMessage  # names in any case


class NetworkError(HubError):
    """A failure that may pass: no response, part of one, or a request to wait. Retry after `wait_seconds`."""

    def __init__(self, message: str, hint: str = "", wait_seconds: float = 0.0) -> None:
        super().__init__(message, hint)
        self.wait_seconds = wait_seconds


class Response:
    """A response whose headers have arrived. `url` is its origin; `hops` are the headers of redirects on the way."""

    def __init__(self, raw: http.client.HTTPResponse, sock: socket.socket, url: str, hops: list[Headers]) -> None:
        self.status = raw.status
        self.headers: Headers = raw.headers
        self.url = url
        self.hops = hops
        self._raw = raw
        self.sock = sock

    def read_into(self, buffer: memoryview) -> int:
        """Read at most a buffer of the body; 0 at its end. NetworkError when the connection breaks."""
        try:
            return self._raw.readinto1(buffer)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None

    def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; HubError when it is larger than `limit`, NetworkError when it takes too long."""
        body, n_pieces = bytearray(), 0
        try:
            with deadline(self.sock):
                buffer = memoryview(bytearray(_PIECE_BYTES))
                while len(body) <= limit and (n_read := self._raw.readinto1(buffer)):
                    body += buffer[:n_read]
                    n_pieces += 1
                    if n_pieces > _MAX_CRUMBS and len(body) < n_pieces * _CRUMB_BYTES:
                        raise HubError(f"{host_of(self.url)} sends the answer in pieces of a few bytes", MIRROR_HINT)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None
        if len(body) > limit:
            raise HubError(f"{host_of(self.url)} sends more than {limit:,} bytes where less is expected")
        if self._raw.length:
            raise NetworkError("the connection broke off: the answer was cut short", "try again")
        return bytes(body)

    @property
    def is_read(self) -> bool:
        """Whether the body is at its end, so that the connection can be reused."""
        return self._raw.isclosed() and not self._raw.will_close


class Http:
    """Connections to a hub, kept open and usable from several threads. `tell` shows a note about a wait to the user."""

    def __init__(self, access: Access, tell: Callable[[str], object] = lambda text: None) -> None:
        self.access = access
        self.tell = tell
        self._home = origin_of(urlsplit(access.endpoint))
        self._idle: dict[Origin, list[Connection]] = {}
        self._busy: set[socket.socket] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close idle connections and break off busy ones, whose reads raise NetworkError."""
        with self._lock:
            idle = [connection for waiting in self._idle.values() for connection in waiting]
            busy = list(self._busy)
            self._idle.clear()
        for connection in idle:
            connection.close()
        for sock in busy:
            break_off(sock)

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
        """GET `url` and follow redirects.

        HubError offline and for forbidden redirects; NetworkError for no response.
        """
        if self.access.offline:
            raise HubError("localrun is offline", "leave out --offline, or unset HF_HUB_OFFLINE and LOCALRUN_OFFLINE")
        hops: list[Headers] = []
        for _ in range(MAX_REDIRECTS):
            connection, response = self._ask(url, headers or {}, hops)
            self._busy.add(response.sock)
            try:
                target = response.headers.get("Location") if response.status in _REDIRECTS else None
                if target is None:
                    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                        raise HubError(
                            f"{host_of(url)} sends a compressed answer, which was not asked for", MIRROR_HINT
                        )
                    yield response
                    return
                response.read(1 << 16)
            finally:
                self._busy.discard(response.sock)
                self._give_back(url, connection, response)
            hops.append(response.headers)
            url = self._redirected(url, target)
        raise HubError(f"{host_of(url)} redirects in circles", MIRROR_HINT)

    def _ask(self, url: str, headers: Mapping[str, str], hops: list[Headers]) -> tuple[Connection, Response]:
        """Send the request, first over an open connection, which the server may have closed meanwhile."""
        parts = urlsplit(url)
        origin = origin_of(parts)
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        if self.access.token and origin == self._home and may_see_token(origin):
            sent["Authorization"] = f"Bearer {self.access.token}"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with self._lock:
            kept = self._idle.get(origin, [])
            connection = kept.pop() if kept else None
        if connection is not None:
            with suppress(OSError, http.client.HTTPException):
                return connection, Response(*connection.ask(path, sent), url, hops)
            connection.close()
        connection = Connection(origin, may_be_private=origin[1] == self._home[1])
        try:
            return connection, Response(*connection.ask(path, sent), url, hops)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            connection.close()
            hint = "check the network; models on disk work without one"
            raise NetworkError(f"{host_of(url)} cannot be reached{connection.over}: {reason_of(error)}", hint) from None

    def _redirected(self, url: str, target: str) -> str:
        try:
            new = urljoin(url, target)
            parts = urlsplit(new)
            scheme, host, _ = origin_of(parts)
        except ValueError:
            raise HubError(f"{host_of(url)} redirects to nowhere", MIRROR_HINT) from None
        if scheme not in ("http", "https") or not host or not new.isascii() or not new.isprintable() or " " in new:
            raise HubError(f"{host_of(url)} redirects to nowhere", MIRROR_HINT)
        if urlsplit(url).scheme == "https" and scheme != "https":
            raise HubError(f"{host_of(url)} redirects from https to http", MIRROR_HINT)
        return new

    def _give_back(self, url: str, connection: Connection, response: Response) -> None:
        if response.is_read and not self.access.offline:
            with self._lock:
                self._idle.setdefault(origin_of(urlsplit(url)), []).append(connection)
        else:
            connection.close()


def _broken(error: Exception) -> NetworkError:
    return NetworkError(f"the connection broke off: {reason_of(error)}", "try again: what has arrived is kept")
