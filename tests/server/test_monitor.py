"""Requests under way can be seen and cancelled; what is over is counted."""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.schemas import check
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.errors import NotFoundError, UsageError
from localrun.base.events import Accepted, Event, Prefill, Token
from localrun.base.request import LoadOptions
from localrun.cli.app import run_command_line
from localrun.cli.serve import log_request
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import write_endpoints
from localrun.server.monitor.client import MonitorClient
from localrun.server.monitor.live import MAX_NAME, LiveRequest
from localrun.server.monitor.rows import rows_of
from localrun.server.options import ServerOptions


def test_a_request_is_seen_and_cancelled(http: httpx.Client, served: Served) -> None:
    body = {"messages": [{"role": "user", "content": "ab…"}], "prompt_cache_key": "chat-1", "max_tokens": 100}
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(httpx.post(f"{served.url}/v1/chat/completions", json=body, headers={"user-agent": "me/1"}))

    thread = threading.Thread(target=ask)
    thread.start()
    (row,) = until(
        lambda: [row for row in http.get("/v1/localrun/requests").json()["requests"] if row["written_tokens"] == 2]
    )
    assert (row["client"], row["session"], row["phase"]) == ("me/1", "chat-1", "writing")
    assert (row["protocol"], row["prompt_tokens"], row["model"]) == ("/v1/chat/completions", 3, "fake")
    assert http.delete(f"/v1/localrun/requests/{row['number']}").json() == {"cancelled": row["number"]}
    thread.join()
    assert answers[0].json()["choices"][0]["message"]["content"] == "ab"
    until(lambda: http.get("/v1/localrun/requests").json()["requests"] == [])
    for number in (row["number"], "none", "9" * 5_000):
        assert http.delete(f"/v1/localrun/requests/{number}").status_code == 404


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_request_is_raised_also_while_its_model_is_loaded(is_loaded: bool) -> None:
    fake, loaded = FakeClient(LoadOptions(Path()), lambda request: "a…"), threading.Event()

    def open_client(choice: ModelChoice) -> FakeClient:
        loaded.wait()
        return fake

    if is_loaded:
        loaded.set()
    with serving(open_client) as served, ThreadPoolExecutor(1) as thread:
        body = {"messages": [{"role": "user", "content": "hi"}]}
        asked = thread.submit(httpx.post, f"{served.url}/v1/chat/completions", json=body, timeout=60)
        (live,) = until(lambda: list(served.service.registry.requests.values()))
        until(lambda: live.written_tokens or not is_loaded)
        monitor = MonitorClient(served.url)
        monitor.raise_priority(live.number)
        loaded.set()
        until(lambda: fake.raised and live.written_tokens)
        monitor.cancel(live.number)
        assert asked.result().status_code == 200
        until(lambda: not served.service.registry.requests)
        with pytest.raises(NotFoundError, match="over"):
            monitor.raise_priority(live.number)


def test_an_address_is_taken_without_http(served: Served) -> None:
    assert MonitorClient(served.url.removeprefix("http://")).state()["model"]["name"] == "fake"


@pytest.mark.parametrize(
    "url", ["localhost:99999", "localhost:port", "http://[::1", "http://", "http://a b", "https://localhost:1"]
)
def test_no_address_of_a_server(url: str) -> None:
    with pytest.raises(UsageError, match="is no address of a server"):
        MonitorClient(url).state()


def test_a_model_that_was_let_go_is_loaded_for_whoever_asks_which_there_is(http: httpx.Client, served: Served) -> None:
    http.post("/api/generate", json={"model": "", "keep_alive": 0})
    until(lambda: http.get("/v1/localrun/requests").json()["model"] is None)
    monitor = MonitorClient(served.url)
    loaded = monitor.load()
    assert (loaded["id"], loaded["ctx"]) == ("fake", 128)
    assert monitor.state()["model"]["name"] == "fake"
    with pytest.raises(NotFoundError, match="no-such-model"):
        monitor.load("no-such-model")


def test_what_is_over_is_counted(http: httpx.Client) -> None:
    def count(name: str) -> float:
        lines = http.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"localrun_{name}"))

    before = count("requests_total"), count("completion_tokens_total"), count("prompt_tokens_total")
    http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "abcd"}]})
    until(lambda: count("requests_total") > before[0])  # the answer is there a moment earlier
    after = count("requests_total"), count("completion_tokens_total"), count("prompt_tokens_total")
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 4, 3]


LIVE = LiveRequest("/v1", "c", "m", "", number=2, began=10.0)


@pytest.mark.parametrize(
    ("changes", "phase", "rate", "left"),
    [
        ({"phase": "queued"}, "queued", None, None),
        (
            {"phase": "reading", "read_since": 12.0, "read_tokens": 60, "cached_tokens": 20, "prompt_tokens": 100},
            "reading",
            5.0,
            8.0,
        ),
        ({"phase": "writing", "first_token": 15.0, "written_tokens": 11, "max_tokens": 31}, "writing", 2.0, 10.0),
        ({"phase": "writing", "first_token": 15.0, "written_tokens": 11}, "writing", 2.0, None),
        ({"phase": "writing", "first_token": 20.0, "written_tokens": 1}, "writing", None, None),
    ],
)
def test_rates_and_what_is_left(changes: dict[str, object], phase: str, rate: float | None, left: float | None) -> None:
    (row,) = rows_of([replace(LIVE, **changes)], now=20.0)  # type: ignore[arg-type]
    assert (row.phase, row.rate, row.seconds_left, row.seconds) == (phase, rate, left, 10.0)


def test_why_a_request_waits() -> None:
    """None is swallowed without a word (orbi#233)."""
    first = replace(LIVE, number=1, phase="writing")
    queued, loading = replace(LIVE, phase="queued"), replace(LIVE, number=3, phase="waiting for the model")
    assert [row.waits_for for row in rows_of([loading, queued, first], 20.0)] == [
        "",
        "its turn, 1 before it",
        "2 answers of another model",
    ]
    assert rows_of([loading, first], 20.0)[1].waits_for == "1 answer of another model"


def test_a_client_is_named_as_it_spells_itself(
    http: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[LiveRequest] = []
    monkeypatch.setattr(served.service, "_log", ended.append)
    body = {"messages": [{"role": "user", "content": "a"}]}
    http.post("/v1/chat/completions", json=body, headers={b"user-agent": "Müller/1 🐟".encode()})
    http.post("/v1/chat/completions", json=body, headers={b"user-agent": b"M\xfcller/1"})
    assert [live.client for live in until(lambda: ended[1:] and ended)] == ["Müller/1 🐟", "M\ufffdller/1"]


def test_no_name_that_a_client_sends_is_longer_than_the_screen(
    http: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[LiveRequest] = []
    monkeypatch.setattr(served.service, "_log", ended.append)
    body = {"messages": [{"role": "user", "content": "a"}], "model": "m" * 5_000, "prompt_cache_key": "s" * 5_000}
    http.post("/v1/chat/completions", json=body, headers={"user-agent": "c" * 5_000})
    (live,) = until(lambda: ended)
    assert max(map(len, (live.client, live.model, live.session))) == MAX_NAME


@pytest.mark.parametrize(
    ("outcome", "events", "says"),
    [
        ("left", (), "the client left after"),
        ("left", (Accepted(90), Prefill(64, 32, 90)), "s, 64 of 90 tokens read, 32 of them cached, 0 written"),
        (
            "done",
            (Accepted(9), Prefill(0, 0, 9), Token(1, "secret", "answer")),
            "9 of 9 tokens read, 0 of them cached, 1",
        ),
        ("queue_full", (), "queue_full after"),
    ],
)
def test_the_log_says_who_ended_a_request_and_how_far_it_was(
    outcome: str, events: tuple[Event, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other servers only say that a client is gone (lms#460)."""
    live = LiveRequest("/v1", "c", "m", "")
    for event in events:
        live.take(event)
    live.end(outcome)
    log_request(live)
    logged = capsys.readouterr().err
    assert says in logged
    assert "secret" not in logged


def test_a_log_that_nobody_reads_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper's pipe, or a terminal that was stopped."""
    live = LiveRequest("/v1", "c", "m", "")
    live.end("done")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # so that what would wait fails
    with open(reading, "rb", buffering=0) as log, open(writing, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        n_held = os.write(writing, bytes(1 << 22))
        log_request(live)
        while n_held > 0:
            n_held -= len(log.read(n_held))
        log_request(live)
        assert b": done after" in log.read(1000)


def test_top_shows_the_same(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["top", "--server", served.url, "--json"]) == 0
    check(json.loads(capsys.readouterr().out), "top")
    assert run_command_line(["top", "--server", served.url]) == 0
    assert "no request is under way" in capsys.readouterr().err


def test_top_asks_a_server_by_its_name_with_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeClient(LoadOptions(Path()), lambda request: "")
    with serving(lambda choice: fake, ServerOptions(port=0, api_key="secret")) as running:
        assert run_command_line(["top", "--server", running.url]) == 2
        assert "needs its key" in capsys.readouterr().err
        write_endpoints([Endpoint("office", f"{running.url}/v1", "secret")])
        assert run_command_line(["top", "--server", "office", "--json"]) == 0
        check(json.loads(capsys.readouterr().out), "top")


def test_top_without_a_server_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["top"]) == 3
    assert "localrun serve" in capsys.readouterr().err
    assert run_command_line(["top", "--server", "http://127.0.0.1:9"]) == 8
    assert run_command_line(["top", "--server", "ftp://x"]) == 2
