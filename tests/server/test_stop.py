"""The end of a server: answers under way have time, and then end with an error that says so."""

import asyncio
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import PROTOCOLS, frames, question
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.request import LoadOptions
from localrun.client.choice import builtin
from localrun.client.model_slot import ModelSlot
from localrun.server import listen
from localrun.server.listen import HttpServer
from localrun.server.models import ModelHost
from localrun.server.options import ServerOptions
from localrun.server.service import Service

ENDLESS = FakeClient(LoadOptions(Path()), lambda request: "ab…")


def once(served: Served) -> None:
    served.end()


def twice(served: Served) -> None:
    served.end()
    served.end()


@pytest.mark.parametrize(("path", "is_stream"), [*product(PROTOCOLS, [False, True])])
def test_a_late_answer_ends_with_an_error(path: str, is_stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "DRAIN_SECONDS", 0)
    answer = answer_of(path, is_stream, once)
    if not is_stream:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.status_code == (200 if is_stream else 503)
    said = json.dumps(frames(answer.text)[-1])
    assert "server has been stopped" in said
    assert "server_stopped" in said or path == "/v1/responses"  # whose codes are OpenAI's


def test_an_idle_server_does_not_have_to_look_to_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    on_tick = HttpServer.on_tick

    async def counted(self: HttpServer, counter: int) -> bool:
        looks.append(counter)
        return await on_tick(self, counter)

    monkeypatch.setattr(HttpServer, "on_tick", counted)
    monkeypatch.setattr(listen, "DATE_SECONDS", 3600)
    with serving(lambda choice: ENDLESS) as served:
        assert httpx.get(f"{served.url}/health").status_code == 200
        assert "date" in httpx.get(f"{served.url}/health").headers
    assert len(looks) == 2, "once at the beginning, and once at the end"


def test_a_second_signal_ends_answers_at_once() -> None:
    assert answer_of("/v1/messages", False, twice).status_code == 503


def test_a_client_that_takes_nothing_does_not_hold_the_end_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "LEAVE_SECONDS", 0.05)
    fake = FakeClient(LoadOptions(Path()), lambda request: "x" * 40_000 + "…")
    body = json.dumps({**question("/v1/completions", "hi"), "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with serving(lambda choice: fake) as served:
            place = urlsplit(served.url)
            stalled.connect((place.hostname, place.port))
            stalled.sendall(head.encode() + body)
            (live,) = until(lambda: list(served.service.registry.requests.values()))
            until(lambda: live.written_tokens)
            twice(served)
            until(lambda: live.outcome)
    assert live.outcome in ("left", "server_stopped")


def test_a_load_is_given_up() -> None:
    options = ServerOptions()
    server = HttpServer(Service(ModelHost(ModelSlot(lambda choice, progress: ENDLESS), builtin(), options), options))
    began: list[str] = []

    async def load() -> None:
        began.append("load")
        await asyncio.Event().wait()

    async def stopped() -> bool:
        loading = asyncio.ensure_future(server.unless_stopped(load()))
        while not began:
            await asyncio.sleep(0)
        server.stop()
        return await loading

    assert not asyncio.run(stopped())


def answer_of(path: str, is_stream: bool, end: Callable[[Served], None]) -> httpx.Response:
    """The answer to a question that is answered without end, by a server that is ended meanwhile."""
    with serving(lambda choice: ENDLESS) as served, ThreadPoolExecutor(1) as thread:
        body = {**question(path, "hi"), "stream": is_stream}
        asked = thread.submit(httpx.post, f"{served.url}{path}", json=body, timeout=60)
        (live,) = until(lambda: list(served.service.registry.requests.values()))
        until(lambda: live.written_tokens)
        end(served)
        return asked.result()
