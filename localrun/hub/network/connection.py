"""One HTTP connection: by the system's proxy where there is one, with TLS for https, and with a time limit."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import Any

from localrun.base.errors import HubError
from localrun.base.sanitize import clean
from localrun.base.timer import calling_after
from localrun.hub.network.proxy import proxy_for
from localrun.hub.network.url_origin import DEFAULT_PORTS, Origin, is_public

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0  # without a byte
ANSWER_SECONDS = 45.0  # for headers, and for a body that is read whole
MIRROR_HINT = "if HF_ENDPOINT or a proxy is set, it may not be a full mirror of the hub: try without it"


class _Response(http.client.HTTPResponse):
    """A response whose body is read in pieces: `readinto` fills the buffer, `read1` copies what has arrived."""

    def readinto1(self, buffer: Any) -> int:
        if self.chunked or self.length is None:
            return super().readinto1(buffer)
        n_read = self.fp.readinto1(memoryview(buffer)[: self.length]) if self.length else 0
        self.length -= n_read
        if not self.length:
            self.read()  # nothing is left: frees the connection
        return n_read


class Connection(http.client.HTTPConnection):
    """A connection to one origin. `may_be_private`: the host name may resolve to a private address."""

    response_class = _Response

    def __init__(self, origin: Origin, may_be_private: bool) -> None:
        self._origin = origin
        self._may_be_private = may_be_private
        scheme, host, port = origin
        proxy = proxy_for(origin)
        super().__init__(*((proxy.host, proxy.port) if proxy else (host, port)), timeout=CONNECT_SECONDS)
        self.over = f" over the proxy {proxy.host}:{proxy.port}" if proxy else ""  # for messages
        self._absolute = proxy is not None and scheme == "http"
        self._for_proxy = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
        if proxy is not None and scheme == "https":
            self.set_tunnel(host, port, self._for_proxy)

    def connect(self) -> None:
        if self.over:
            super().connect()
        else:
            self.sock = _dial(self._origin, self._may_be_private)
        if self._origin[0] == "https":
            self.sock = _tls().wrap_socket(self.sock, server_hostname=self._origin[1])
        self.sock.settimeout(IDLE_SECONDS)

    def ask(
        self, path: str, headers: Mapping[str, str], body: bytes | None = None, seconds: float | None = None
    ) -> tuple[http.client.HTTPResponse, socket.socket]:
        """Send GET, or POST with a body, and wait `seconds` at most for the headers of the response."""
        scheme, host, port = self._origin
        more = self._for_proxy if self._absolute else {}
        if self._absolute:
            path = f"{scheme}://{_in_url(host)}:{port}{path}"
        host_header = _in_url(host) + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")
        if self.sock is None:
            self.connect()
        sock: socket.socket = self.sock
        with deadline(sock, seconds):
            self.request("GET" if body is None else "POST", path, body, {"Host": host_header, **more, **headers})
            return self.getresponse(), sock


def deadline(sock: socket.socket, seconds: float | None = None) -> AbstractContextManager[None]:
    """Break the connection off when the block takes longer, even while the other side sends slowly."""
    return calling_after(seconds or ANSWER_SECONDS, break_off, sock)


def break_off(sock: socket.socket) -> None:
    """End a read that another thread waits for on this connection."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def reason_of(error: Exception) -> str:
    """The reason of an error in the system's words, without anything that was sent."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.HTTPException):
        return "the answer was cut short" if isinstance(error, http.client.IncompleteRead) else "it hung up"
    return clean(getattr(error, "strerror", None) or str(error), keep_newlines=False)[:200]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _dial(origin: Origin, may_be_private: bool) -> socket.socket:
    """Connect to the first address that answers; exactly the checked address is used."""
    _, host, port = origin
    failure: OSError = OSError(f"no address for {host}")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found.sort(key=lambda info: info[0] == socket.AF_INET6)  # where IPv6 is broken, it is broken silently
    for family, kind, protocol, _, address in found:
        if not may_be_private and not is_public(str(address[0])):
            raise HubError(f"the hub redirects to {host}, an address inside a private network", MIRROR_HINT)
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure
