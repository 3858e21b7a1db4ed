"""Logprobs of a server's answers: as chats and raw prompts have them, and none at all."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, event, failure, fake_chat_server

from localrun.base.errors import UsageError
from localrun.base.events import Done, Event, Token, TokenLogprob, TopLogprob
from localrun.base.request import Request
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.logprobs import logprobs_of

HI = Request(messages=({"role": "user", "content": "Hi"},), logprobs=2)


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def ask(server: FakeChatServer, request: Request, *replies: Reply) -> list[Event]:
    server.replies = list(replies)
    return list(RemoteClient(Endpoint("lab", server.url, model="tiny")).generate(request))


def entry(text: str, logprob: object, *top: tuple[str, object]) -> dict[str, object]:
    others = [{"token": other, "logprob": value, "bytes": None} for other, value in top]
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": others}


def told(events: list[Event]) -> list[tuple[str, TokenLogprob | None]]:
    return [(one.text, one.logprob) for one in events if isinstance(one, Token)]


def notes(events: list[Event]) -> list[str]:
    assert isinstance(events[-1], Done)
    return [note for note in events[-1].completion.notes if "logprobs" in note]


def with_text(text: str, *entries: object) -> bytes:
    logprobs = {"content": list(entries)}
    return event(choices=[{"index": 0, "delta": {"content": text}, "logprobs": logprobs, "finish_reason": None}])


def test_each_token_comes_with_its_logprob(server: FakeChatServer) -> None:
    pieces = (with_text("Yes", entry("Yes", -0.5, ("No", -1.5), ("Yes", -0.5))), with_text("", entry("!", -0.25)))
    events = ask(server, HI, Reply((*pieces, delta("stop"), DONE)))
    yes = TokenLogprob(-1, -0.5, (TopLogprob(-1, -0.5, b"Yes"), TopLogprob(-1, -1.5, b"No")), b"Yes")
    assert told(events) == [("Yes", yes), ("", TokenLogprob(-1, -0.25, (), b"!"))]
    assert notes(events) == []
    body = server.seen[-1].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)


def test_several_tokens_of_one_chunk_are_told_apart(server: FakeChatServer) -> None:
    events = ask(server, HI, Reply((with_text("Yes!", entry("Yes", -0.5), entry("!", -0.25)), delta("stop"), DONE)))
    assert [(text, logprob.piece) for text, logprob in told(events) if logprob] == [("Yes!", b"Yes"), ("", b"!")]


def test_raw_prompts_have_a_form_of_their_own(server: FakeChatServer) -> None:
    said = {"tokens": ["Yes"], "token_logprobs": [-0.5], "top_logprobs": [{"No": -1.5, "Yes": -0.5}]}
    piece = event(choices=[{"index": 0, "text": "Yes", "logprobs": said, "finish_reason": "stop"}])
    events = ask(server, replace(HI, messages=(), prompt="Is it?"), Reply((piece, DONE)))
    [(text, logprob)] = told(events)
    assert logprob is not None
    assert (text, logprob.piece, [one.piece for one in logprob.top]) == ("Yes", b"Yes", [b"Yes", b"No"])
    assert server.seen[-1].body["logprobs"] == 2
    assert "top_logprobs" not in server.seen[-1].body


@pytest.mark.parametrize("refusal", ["Unexpected keys: logprobs", "top_logprobs must be at most 1"])
def test_a_server_that_refuses_them_answers_without(server: FakeChatServer, refusal: str) -> None:
    whole = Reply((delta(content="Yes"), delta("stop"), DONE))
    events = ask(server, HI, failure(400, refusal), whole)
    assert notes(events) == ["the server gave no logprobs, which were asked for"]
    assert not {"logprobs", "top_logprobs"} & server.seen[-1].body.keys()


def test_one_that_passes_over_them_is_noticed(server: FakeChatServer) -> None:
    whole = Reply((delta(content="Yes"), delta("stop"), DONE))
    assert notes(ask(server, HI, whole)) == ["the server gave no logprobs, which were asked for"]
    assert notes(ask(server, replace(HI, logprobs=None), whole)) == []


def test_an_engine_that_says_it_has_none_is_not_asked(server: FakeChatServer) -> None:
    with pytest.raises(UsageError, match="logprobs of a prompt"):
        ask(server, replace(HI, prompt_logprobs=1))
    assert not [seen for seen in server.seen if seen.method == "POST"]


@pytest.mark.parametrize(
    "said",
    [
        *(None, 7, [], {}, {"content": None}, {"content": [3, None]}, {"tokens": "ab"}, {"tokens": [5]}),
        {"content": [{"token": 5, "logprob": "x", "bytes": [900], "top_logprobs": {"a": 1}, "id": True}]},
        {"tokens": ["a"], "token_logprobs": 1, "top_logprobs": [["a"]]},
        json.loads('{"content": [{"token": "a", "logprob": NaN, "top_logprobs": [{"token": "b", "logprob": 3}, 4]}]}'),
        json.loads('{"content": [{"token": "a", "logprob": -Infinity, "bytes": [97], "top_logprobs": null}]}'),
    ],
)
def test_whatever_a_server_sends_is_a_logprob_or_none(said: object) -> None:
    for token in logprobs_of(said):
        assert token.logprob is None
        assert token.top == ()
        assert token.token_id == -1
