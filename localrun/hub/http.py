"""HTTP for the hub, and what it may not do to us.

Nothing is opened offline. The token goes to the configured origin and nowhere else. Redirects are followed by hand:
never from https to http, never to an address of a private network that the hub's own name does not stand for.
Compressed bodies are refused, since none was asked for. Bodies read whole have a limit in bytes and in seconds.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from localrun.base.errors import HubError
from localrun.base.sanitize import clean
from localrun.hub.access import Access

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0  # without a byte
ANSWER_SECONDS = 45.0  # for headers, and for a body that is read whole
LONGEST_WAIT = 60.0  # that a hub which is too busy may ask for; a person would rather know
MAX_BODY = 16 << 20
MAX_REDIRECTS = 6
USER_AGENT = "localrun"

Origin = tuple[str, str, int]  # scheme, host, port
Headers = http.client.HTTPMessage  # names in any case


class NetworkError(HubError):
    """No answer, half of one, or one that says later: trying again may help, after `wait_seconds` at the soonest."""

    def __init__(self, message: str, hint: str = "", wait_seconds: float = 0.0) -> None:
        super().__init__(message, hint)
        self.wait_seconds = wait_seconds


class Response:
    """An answer whose headers have come. `url` is where it came from, `hops` what redirects said on the way."""

    def __init__(self, raw: http.client.HTTPResponse, sock: socket.socket, url: str, hops: list[Headers]) -> None:
        self.status = raw.status
        self.headers: Headers = raw.headers
        self.url = url
        self.hops = hops
        self._raw = raw
        self.sock = sock

    def read_into(self, buffer: memoryview) -> int:
        """What has come of the body, at most a buffer full; 0 at its end. NetworkError when the connection breaks."""
        try:
            return self._raw.readinto1(buffer)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None

    def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body; HubError when it is larger than `limit`, NetworkError when it takes too long."""
        try:
            with deadline(self.sock):
                body = self._raw.read(limit + 1)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None
        if len(body) > limit:
            raise HubError(f"{host_of(self.url)} sends more than {limit:,} bytes where a little is expected")
        if self._raw.length:
            raise NetworkError("the connection broke off: the answer was cut short", "try again")
        return body

    @property
    def is_read(self) -> bool:
        """Whether the body is at its end, so that the connection can be used again."""
        return self._raw.isclosed() and not self._raw.will_close


class Http:
    """Connections to a hub, kept open and safe to use from several threads. `tell` is how a person hears of a wait."""

    def __init__(self, access: Access, tell: Callable[[str], None] = lambda text: None) -> None:
        self.access = access
        self.tell = tell
        self._home = origin_of(urlsplit(access.endpoint))
        self._idle: dict[Origin, list[Connection]] = {}
        self._busy: set[socket.socket] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close what is idle, and break off what is not: whoever reads there gets a NetworkError now."""
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
        """GET `url`, redirects followed. HubError offline and for what may not be; NetworkError for no answer."""
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

    def _ask(self, url: str, headers: Mapping[str, str], hops: list[Headers]) -> tuple["Connection", Response]:
        """Send the request; over a kept connection first, which may have been closed meanwhile."""
        parts = urlsplit(url)
        origin = origin_of(parts)
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        if self.access.token and origin == self._home and _may_see_token(origin):
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
            hint = "check the network; --offline works with what is on disk"
            raise NetworkError(f"{host_of(url)} cannot be reached: {reason_of(error)}", hint) from None

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

    def _give_back(self, url: str, connection: "Connection", response: Response) -> None:
        if response.is_read and not self.access.offline:
            with self._lock:
                self._idle.setdefault(origin_of(urlsplit(url)), []).append(connection)
        else:
            connection.close()


class _Body(http.client.HTTPResponse):
    """An answer whose body can be read as it comes: `readinto` waits until the buffer is full, `read1` copies."""

    def readinto1(self, buffer: Any) -> int:
        if self.chunked or not self.length:
            return super().readinto1(buffer)
        n_read = self.fp.readinto1(memoryview(buffer)[: self.length])
        self.length -= n_read
        if not self.length:
            self.read()  # nothing is left: frees the connection
        return n_read


MIRROR_HINT = "if HF_ENDPOINT or a proxy is set, it may not be a full mirror of the hub: try without it"


class Connection(http.client.HTTPConnection):
    """One connection, over a proxy where the system names one, over TLS for https."""

    response_class = _Body

    def __init__(self, origin: Origin, may_be_private: bool) -> None:
        self._origin = origin
        self._may_be_private = may_be_private
        scheme, host, port = origin
        proxy = _proxy_for(scheme, host)
        at = urlsplit(proxy if "//" in proxy else f"http://{proxy}") if proxy else None
        place = (at.hostname or "", at.port or 80) if at else (host, port)
        super().__init__(*place, timeout=CONNECT_SECONDS)
        self._through_proxy = at is not None
        self._absolute = at is not None and scheme == "http"
        if at is not None and scheme == "https":
            self.set_tunnel(host, port)

    def connect(self) -> None:
        if self._through_proxy:
            super().connect()
        else:
            self.sock = _dial(self._origin, self._may_be_private)
        if self._origin[0] == "https":
            self.sock = _tls().wrap_socket(self.sock, server_hostname=self._origin[1])
        self.sock.settimeout(IDLE_SECONDS)

    def ask(
        self, path: str, headers: Mapping[str, str], body: bytes | None = None, seconds: float | None = None
    ) -> tuple[http.client.HTTPResponse, socket.socket]:
        """GET, or POST with a body, and wait some seconds for the headers of the answer."""
        scheme, host, port = self._origin
        if self._absolute:
            path = f"{scheme}://{_in_url(host)}:{port}{path}"
        host_header = _in_url(host) + ("" if port == _DEFAULT_PORTS[scheme] else f":{port}")
        if self.sock is None:
            self.connect()
        sock: socket.socket = self.sock
        with deadline(sock, seconds):
            self.request("GET" if body is None else "POST", path, body, {"Host": host_header, **headers})
            return self.getresponse(), sock


_REDIRECTS = (301, 302, 303, 307, 308)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(parts: SplitResult) -> Origin:
    """Scheme, host and port. ValueError for a port that is none."""
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def _broken(error: Exception) -> NetworkError:
    return NetworkError(f"the connection broke off: {reason_of(error)}", "try again: what has arrived is kept")


def reason_of(error: Exception) -> str:
    """Why, in the system's words, without anything that was sent."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.HTTPException):
        return "the answer was cut short" if isinstance(error, http.client.IncompleteRead) else "it hung up"
    return clean(getattr(error, "strerror", None) or str(error), keep_newlines=False)[:200]


def host_of(url: str) -> str:
    """The host of an address, for messages: signatures and paths do not belong there."""
    return urlsplit(url).hostname or "the hub"


def _may_see_token(origin: Origin) -> bool:
    """https, or this very machine."""
    scheme, host, _ = origin
    return scheme == "https" or is_this_machine(host)


def is_this_machine(host: str) -> bool:
    """Whether a name or address is one of this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _proxy_for(scheme: str, host: str) -> str:
    direct = is_this_machine(host) or urllib.request.proxy_bypass(host)
    return "" if direct else urllib.request.getproxies().get(scheme, "")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _dial(origin: Origin, may_be_private: bool) -> socket.socket:
    """Connect to the first address that answers; the address that was checked is the one that is used."""
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


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet, and not of a private network, this machine or a cloud's inside."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast


@contextmanager
def deadline(sock: socket.socket, seconds: float | None = None) -> Iterator[None]:
    """Break the connection off when what is inside takes longer, however busily the other side drips."""
    timer = threading.Timer(seconds or ANSWER_SECONDS, break_off, (sock,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def break_off(sock: socket.socket) -> None:
    """End what another thread waits for on this connection."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
