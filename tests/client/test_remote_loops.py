"""Answers of servers that go round in circles: noticed by the pieces of their text, said once, ended where asked to."""

from dataclasses import replace

import pytest
from localrun_testing.fake_chat_server import DONE, Reply, delta, fake_chat_server

from localrun.base.events import Completion, Done, Event, Loop, Token
from localrun.base.request import Request
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.engine.loops import CHECK_TOKENS, MIN_TOKENS

HI = Request(messages=({"role": "user", "content": "Hi"},))
BEGINNING = ["Let", " me", " see", ":"]


def ask(pieces: list[str], stop_on_loop: bool, channel: str = "content") -> tuple[list[Event], Completion]:
    with fake_chat_server() as server:
        server.replies = [Reply((*(delta(**{channel: piece}) for piece in pieces), delta("stop"), DONE))]
        with RemoteClient(Endpoint("lab", server.url, "", "tiny")) as client:
            *events, last = client.generate(replace(HI, stop_on_loop=stop_on_loop))
    assert isinstance(last, Done)
    return events, last.completion


@pytest.mark.parametrize("channel", ["content", "reasoning_content"])
@pytest.mark.parametrize("unit", [[" ha"], [" one", " two", " three"]])
def test_a_loop_ends_the_answer_where_that_is_asked_for(channel: str, unit: list[str]) -> None:
    pieces = BEGINNING + unit * (5 * MIN_TOKENS // len(unit))
    events, done = ask(pieces, True, channel)
    assert (done.stop_reason, done.loop_period) == ("loop", len(unit))
    assert [event for event in events if isinstance(event, Loop)] == [Loop(len(unit))]
    tokens = [event for event in events if isinstance(event, Token)]
    assert MIN_TOKENS <= len(tokens) <= MIN_TOKENS + len(BEGINNING) + CHECK_TOKENS
    assert done.text + done.thinking == "".join(token.text for token in tokens) == "".join(pieces[: len(tokens)])


def test_a_repeating_answer_is_reported_once_and_goes_on() -> None:
    pieces = BEGINNING + [" ha"] * 1500
    events, done = ask(pieces, False)
    assert (done.stop_reason, done.loop_period, done.text) == ("stop", 1, "".join(pieces))
    assert [event for event in events if isinstance(event, Loop)] == [Loop(1)]


def test_a_count_is_no_loop() -> None:
    pieces = [f" {number}" for number in range(1500)]
    events, done = ask(pieces, True)
    assert (done.stop_reason, done.loop_period, done.text) == ("stop", 0, "".join(pieces))
    assert not any(isinstance(event, Loop) for event in events)
