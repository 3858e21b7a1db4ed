"""What headers say of a request reaches the engine, and a program's conversation is never one of the user's."""

import re
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient

from localrun.base.request import Request
from localrun.server.inference import InferenceRequest
from localrun.server.request.headers import SESSION_HEADERS, with_headers


def asked(fake: FakeClient, http: httpx.Client, headers: dict[str, str], **fields: Any) -> Request:
    """The request that the engine was given."""
    body = {"model": "", "messages": [{"role": "user", "content": "hi"}], **fields}
    assert http.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    return fake.requests[-1]


@pytest.mark.parametrize(
    ("header", "fields", "priority"),
    [
        ("", {}, "api"),
        ("low", {}, "background"),
        ("normal", {"service_tier": "flex"}, "api"),
        ("High", {}, "interactive"),
        ("", {"service_tier": "flex"}, "background"),
        ("", {"service_tier": "auto"}, "api"),
        ("", {"service_tier": 5}, "api"),
        ("", {"priority": -1}, "interactive"),
        ("", {"priority": 0, "service_tier": "flex"}, "api"),
        ("", {"priority": 7}, "background"),
        ("high", {"priority": 7}, "interactive"),
    ],
)
def test_priority(fake: FakeClient, http: httpx.Client, header: str, fields: dict[str, Any], priority: str) -> None:
    headers = {"x-localrun-priority": header} if header else {}
    assert asked(fake, http, headers, **fields).priority == priority


def test_deadline(fake: FakeClient, http: httpx.Client) -> None:
    assert asked(fake, http, {}).deadline is None
    deadline = asked(fake, http, {"x-localrun-deadline": "30"}).deadline
    assert deadline is not None
    assert 0 < deadline <= 30


@pytest.mark.parametrize(
    "header", ["x-localrun-priority: urgent", "x-localrun-deadline: soon", "x-localrun-deadline: -1"]
)
def test_headers_of_ours_that_mean_nothing_are_named(http: httpx.Client, header: str) -> None:
    name, _, value = header.partition(": ")
    answer = http.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]}, headers={name: value}
    )
    assert answer.status_code == 400
    assert name in answer.json()["error"]["message"].lower()


def chat_of(headers: dict[str, str], session: str = "") -> str:
    return with_headers(InferenceRequest("", (Request(),), False, session=session), headers).requests[0].chat_id


def test_sessions_are_kept_apart() -> None:
    agent = {"user-agent": "opencode/1.0 (linux)", "session-id": "one"}
    assert re.fullmatch("api-[0-9a-f]{32}", chat_of(agent))
    assert chat_of({}) == chat_of({"user-agent": "opencode/1.0"}) == ""
    assert chat_of({**agent, "user-agent": "opencode/2.1"}) == chat_of(agent), "of a newer version, too"
    others = [
        {**agent, "session-id": "two"},
        {**agent, "user-agent": "codex_cli_rs/1.0"},
        {**agent, "authorization": "Bearer other"},
        {**agent, "x-api-key": "another"},
    ]
    assert len({chat_of(agent), *map(chat_of, others)}) == 5
    assert len({chat_of({name: "one"}) for name in SESSION_HEADERS}) == 1
    assert chat_of(agent, session="two") == chat_of(others[0]), "the body goes before headers"
    assert chat_of({}, session="\ud800").startswith("api-")
    assert chat_of({"user-agent": "ab", "session-id": "c"}) != chat_of({"user-agent": "a", "session-id": "bc"})


def test_the_engine_is_given_the_session(fake: FakeClient, http: httpx.Client) -> None:
    by_body = asked(fake, http, {}, prompt_cache_key="one").chat_id
    assert by_body == asked(fake, http, {"session-id": "one"}).chat_id != ""
    assert asked(fake, http, {}).chat_id == ""


def test_only_a_stream_is_sent_in_small_pieces(fake: FakeClient, http: httpx.Client) -> None:
    assert asked(fake, http, {}, stream=True).gather_ms < asked(fake, http, {}).gather_ms == Request().gather_ms
