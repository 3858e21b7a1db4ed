"""Clients that dawdle, and too many of them."""

import contextlib
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving
from localrun_testing.waiting import PATIENCE, until

from localrun.base.errors import EngineError
from localrun.base.events import Accepted, Event, Token
from localrun.base.request import LoadOptions, Request
from localrun.server import connection, respond, wire
from localrun.server.monitor.live import LiveRequest
from localrun.server.running import Mailbox, NumberedEvent

LONG = "x" * 40_000


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server that soon loses its patience, whose answers are long."""
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.2)
    monkeypatch.setattr(wire, "PING_SECONDS", 0.05)
    fake = FakeClient(LoadOptions(Path()), answer)
    with serving(lambda choice: fake) as running:
        yield running


def answer(request: Request) -> str:
    text = str(request.messages[-1]["content"])
    return LONG if text == "long" else text


def connect(served: Served) -> socket.socket:
    place = urlsplit(served.url)
    assert place.hostname and place.port  # noqa: PT018
    caller = socket.create_connection((place.hostname, place.port))
    caller.settimeout(PATIENCE)
    return caller


def trickle(caller: socket.socket, n: int) -> None:
    """Send that many bytes, one by one."""
    for _ in range(n):
        caller.sendall(b" ")
        time.sleep(0.001)


def well(caller: socket.socket) -> bool:
    """Ask whether the server is well; False where it closed the connection before."""
    said = b""
    with contextlib.suppress(ConnectionError):
        caller.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        while b'{"status":"ok"}' not in said and (more := caller.recv(4096)):
            said += more
    return b'{"status":"ok"}' in said


def test_slow_headers_are_closed(hasty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.2)
    with connect(hasty) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-slow:")
        assert slow.recv(100) == b""
    with contextlib.ExitStack() as opened:
        answered_once = until(lambda: next(filter(well, [opened.enter_context(connect(hasty))]), None))
        with contextlib.suppress(ConnectionError):  # it is closed already
            answered_once.sendall(b"GET /he")
            assert answered_once.recv(100) == b""
    until(lambda: _is_well(hasty))


def test_slow_bodies_are_closed(hasty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that trickle, too: the whole body has one deadline."""
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.2)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with connect(hasty) as slow:
        slow.sendall(head + b"content-length: 10000\r\n\r\n{")
        with pytest.raises(ConnectionError):
            trickle(slow, 10_000)
    assert httpx.get(f"{hasty.url}/health").status_code == 200


def test_beyond_the_most_connections_one_is_told_to_come_back(hasty: Served) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(connection.MAX_CONNECTIONS):
            held.enter_context(connect(hasty))
        late = held.enter_context(connect(hasty))
        said = late.recv(4096)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in said
    until(lambda: _is_well(hasty))


@contextlib.contextmanager
def stalled_stream(served: Served) -> Iterator[None]:
    """A client that asks for a long stream and takes nothing of it, until the block is left."""
    body = json.dumps({"messages": [{"role": "user", "content": "long"}], "stream": True}).encode()
    with connect(served) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        stalled.sendall(head.encode() + b"content-type: application/json\r\n\r\n" + body)
        yield


def test_a_client_that_stops_reading_is_left(hasty: Served, logged: io.StringIO) -> None:
    ended: list[LiveRequest] = []
    hasty.service._log = ended.append
    with stalled_stream(hasty):
        until(lambda: ended)
        until(lambda: not connection.BoundedConnection.open_from)  # though it still holds its end
    assert ended[0].outcome == "left"
    assert not logged.getvalue(), "nothing has failed"


class BreaksOff(FakeClient):
    """Says more than a connection holds, and fails."""

    def events(self, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        yield Accepted(3)
        yield Token(0, "x" * (8 << 20), "answer")
        raise EngineError("it broke")


def test_an_error_for_a_client_that_stops_reading_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, logged: io.StringIO
) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.2)
    fake = BreaksOff(LoadOptions(Path()), answer)
    with serving(lambda choice: fake) as served, stalled_stream(served):
        until(lambda: served.service.registry.requests)
        until(lambda: not connection.BoundedConnection.open_from)
        until(lambda: not served.service.registry.requests)
    assert not logged.getvalue()


def test_a_client_that_waits_is_kept_awake(hasty: Served) -> None:
    body = {"messages": [{"role": "user", "content": "a…"}], "stream": True}
    with httpx.stream("POST", f"{hasty.url}/v1/chat/completions", json=body) as response:
        assert any(line == ": ping" for line in response.iter_lines())


class CallsTwice(Mailbox):
    """Wakes its reader once more after the events were taken, as threads that put them at the same moment may."""

    def take(self) -> list[NumberedEvent]:
        letters = super().take()
        if letters:
            self.there.set()
        return letters


def test_a_reader_that_is_woken_for_nothing_goes_on(hasty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(respond, "Mailbox", CallsTwice)
    body = {"messages": [{"role": "user", "content": "a" * 100}], "stream": True}
    with httpx.stream("POST", f"{hasty.url}/v1/chat/completions", json=body) as response:
        assert list(response.iter_lines())[-2] == "data: [DONE]"


def _is_well(served: Served) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{served.url}/health").status_code == 200
    return False


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", b"200"),
        (b"what is this\r\n\r\n", b"400"),
    ],
)
def test_nothing_is_logged_of_calls_that_are_no_requests(
    hasty: Served, logged: io.StringIO, call: bytes, status: bytes
) -> None:
    """Nor is anybody told to install what localrun has no use for."""
    with connect(hasty) as caller:
        caller.sendall(call)
        assert caller.recv(4096).startswith(b"HTTP/1.1 " + status)
    assert not logged.getvalue()
