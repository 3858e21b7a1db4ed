"""When a hub that is too busy may be asked again, in all the words that hubs have for it."""

import json
import time
from collections.abc import Callable
from email.message import Message
from email.utils import formatdate

import pytest
from localrun_testing.fake_hub import FakeHub

from localrun.base.errors import HubError
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.network.rate_limit import seconds_to_wait
from localrun.hub.remote.api import read_repo

NOW = 1_795_000_000.0  # a moment in 2026
LATER = formatdate(NOW + 40, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([("Retry-After", "55")], 55),
        ([("Retry-After", "0")], 1),
        ([("Retry-After", "1.5")], 2),
        ([("Retry-After", LATER)], 40),
        ([("Retry-After", formatdate(NOW - 3600, usegmt=True))], 1),
        ([("Retry-After", LATER), ("Date", formatdate(NOW + 30, usegmt=True))], 10),  # our clock is behind the hub's
        ([("Retry-After", "7"), ("RateLimit", '"api";r=0;t=55')], 7),
        ([("Retry-After", "soon"), ("RateLimit", '"api";r=0;t=55')], 55),
        ([("RateLimit", '"api";r=0;t=55')], 55),
        ([("ratelimit", "api; r=0; t=55")], 55),
        ([("RateLimit", '"api";t=55;r=0, "day";r=0;t=70, "month";r=9;t=3600')], 70),
        ([("RateLimit", '"day";r=9;t=3600'), ("RateLimit", '"api";r=0;t=5')], 5),
        ([("RateLimit", '"api";r=3;t=55')], 55),
        ([("RateLimit", "limit=500, remaining=0, reset=55")], 55),
        ([("RateLimit", '"reset, t=99";r=0;t=7, "day";r=9;t=3600')], 7),
        ([("RateLimit-Reset", "55")], 55),
        ([("X-RateLimit-Reset", f"{NOW + 20:.0f}")], 20),
        ([], None),
        ([("RateLimit", '"api";r=0')], None),
        ([("RateLimit", ",;=\x00\xff" * 5000)], None),
        ([("Retry-After", "9" * 400)], None),
        ([("Retry-After", "-5")], None),
        ([("Retry-After", "nan")], None),
        ([("Retry-After", "Thu, 26 Nov 99999 18:00:00 GMT")], None),
        ([("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT")], None),
        ([("RateLimit", f"api;r=0;t={'9' * 300}")], None),
    ],
)
def test_seconds_to_wait(headers: list[tuple[str, str]], seconds: float | None) -> None:
    message = Message()
    for name, value in headers:
        message[name] = value
    assert seconds_to_wait(message, NOW) == seconds


@pytest.mark.parametrize(
    "headers", [{"RateLimit": '"api";r=0;t=2', "RateLimit-Policy": '"fixed";"api";q=5;w=3'}, {"Retry-After": "2"}]
)
def test_a_short_wait_is_waited_and_said(
    serve: Callable[..., FakeHub],
    access_to: Callable[..., Access],
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    hub, told = serve({"a/b": {"x.gguf": b"x"}}), list[str]()
    hub.break_file("api", "limits", times=1, to=json.dumps(headers))
    assert read_repo(Http(access_to(hub), told.append), "a/b").name == "a/b"
    assert (waits, len(told)) == ([2.0], 1)
    assert "waiting 2 s" in told[0]


def test_a_hub_with_trouble_of_its_own_is_asked_again_soon_whatever_its_limit_says(
    serve: Callable[..., FakeHub], access_to: Callable[..., Access], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    hub = serve({"a/b": {"x.gguf": b"x"}})
    hub.break_file("api", "busy", times=1, to=json.dumps({"RateLimit": '"api";r=4990;t=280'}))
    assert read_repo(Http(access_to(hub)), "a/b").name == "a/b"
    assert len(waits) == 1
    assert waits[0] < 280


@pytest.mark.parametrize(("seconds", "when"), [(280, "in 280 s"), (3600, "in 60 minutes"), (86400, "in 24 hours")])
def test_a_long_wait_is_named(
    serve: Callable[..., FakeHub], access_to: Callable[..., Access], seconds: int, when: str
) -> None:
    hub = serve({"a/b": {"x.gguf": b"x"}})
    hub.break_file("api", "limits", to=json.dumps({"RateLimit": f'"api";r=0;t={seconds}'}))
    with pytest.raises(HubError, match="too many requests") as caught:
        read_repo(Http(access_to(hub)), "a/b")
    assert f"try again {when}" in caught.value.hint
    assert len(hub.seen) == 1
