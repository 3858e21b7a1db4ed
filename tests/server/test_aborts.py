"""Clients that leave at any moment: nothing of theirs stays behind, and whoever stays is answered.

Others go on for who has left, queued or under way (llama.cpp#24496, #11720), fall to a broken pipe (mlx-lm#677), or run
out of slots (Rapid-MLX#1759).
"""

import json
import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from localrun_testing.served import Served, serving
from localrun_testing.waiting import PATIENCE, until

from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient

BUILTIN = Path(resource("localrun/builtin/localrun-tiny.gguf"))
AT_ONCE = 50
WORDS = ["one", "two", "three", "count", "and", "then", "again"]


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(BUILTIN, name="builtin", ctx=1024)) as client:
        yield client


@pytest.fixture(scope="module")
def served(engine: LocalClient) -> Iterator[Served]:
    with serving(lambda choice: engine) as running:
        yield running


def call(address: tuple[str, int], dice: random.Random) -> socket.socket:
    """A request on its way, with any prompt, as a stream or whole."""
    prompt = " ".join(dice.choices(WORDS, k=dice.choice([3, 30, 300])))
    body = json.dumps(
        {"messages": [{"role": "user", "content": prompt}], "stream": dice.random() < 0.7, "max_tokens": 200}
    ).encode()
    head = "POST /v1/chat/completions HTTP/1.1", "host: localhost", "content-type: application/json"
    lines = (*head, f"content-length: {len(body)}", "", "")
    connection = socket.create_connection(address, timeout=PATIENCE)
    connection.sendall("\r\n".join(lines).encode() + body[: len(body) if dice.random() < 0.95 else len(body) // 2])
    return connection


def leave(connection: socket.socket, dice: random.Random) -> None:
    """At once, after the head, or amid the answer."""
    if dice.random() < 0.3:
        connection.settimeout(0.005)
        with suppress(TimeoutError, ConnectionError):
            connection.recv(dice.choice([1, 500, 5000]))
    connection.close()


def drain(under_way: Mapping[int, object]) -> None:
    """Wait for the end of all, as long as some of them end: a busy machine has hundreds in its queue by now."""
    while begun := set(under_way):
        until(lambda: begun - set(under_way))


def abort(served: Served, engine: LocalClient, n: int, seed: int) -> None:
    """Leave `n` requests, many at once; at the end no block is held and the next is answered."""
    dice, store = random.Random(seed), engine.model.engine.store
    url = httpx.URL(served.url)
    for _ in range(n // AT_ONCE):
        under_way = [call((url.host, url.port or 0), dice) for _ in range(AT_ONCE)]
        dice.shuffle(under_way)
        for connection in under_way:
            leave(connection, dice)
    drain(served.service.registry.requests)
    drain(engine.model.engine.generations.handles)
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    answer = httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    until(lambda: not served.service._n_open)
    until(lambda: not engine.model.engine.generations.handles)
    with engine.model.engine.lock:
        store.tree.clear()
        assert all(pool.n_free == pool.n_blocks for pool in store.pools)
    scheduler = engine.model.engine.scheduler
    assert not scheduler.running
    assert not scheduler.waiting
    assert not scheduler.prefixes._shared


def test_a_thousand_aborts_leak_nothing(served: Served, engine: LocalClient) -> None:
    abort(served, engine, 1_000, 1)


@pytest.mark.slow
def test_ten_thousand_aborts_leak_nothing(served: Served, engine: LocalClient) -> None:
    abort(served, engine, 10_000, 2)
