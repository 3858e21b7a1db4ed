"""Engines behind the OpenAI protocol: answers come whole, and whatever a server does is an event or one plain error."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.fake_chat_server import (
    DONE,
    HELLO,
    FakeChatServer,
    Reply,
    delta,
    event,
    failure,
    fake_chat_server,
)
from localrun_testing.waiting import PATIENCE, until

from localrun.base.constraint import Constraint, of_schema
from localrun.base.errors import (
    EngineDiedError,
    EngineError,
    LocalrunError,
    NotFoundError,
    PromptTooLongError,
    UsageError,
)
from localrun.base.events import Completion, Done, MemoryFigures, Token
from localrun.base.request import Request, Sampling
from localrun.client.remote import http as remote_http
from localrun.client.remote import pages as remote_pages
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.client.remote.models import OfferedModel, list_models

KEY = "sk-canary-123456"
HI = Request(messages=({"role": "user", "content": "Hi"},))
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def client_of(server: FakeChatServer, model: str = "tiny", key: str = "") -> RemoteClient:
    return RemoteClient(Endpoint("lab", server.url, key, model))


def ask(server: FakeChatServer, reply: Reply | None = None, request: Request = HI) -> tuple[list[Token], Completion]:
    if reply is not None:
        server.replies = [reply]
    *tokens, last = client_of(server).generate(request)
    assert isinstance(last, Done)
    assert all(isinstance(token, Token) for token in tokens)
    return [token for token in tokens if isinstance(token, Token)], last.completion


def said_before_the_end(server: FakeChatServer, reply: Reply) -> tuple[str, LocalrunError]:
    server.replies = [reply]
    said = ""
    try:
        for part in client_of(server).generate(HI):
            said += part.text if isinstance(part, Token) else ""
    except LocalrunError as error:
        return said, error
    raise AssertionError("it did end well")


def text_of(tokens: list[Token], channel: str = "answer") -> str:
    return "".join(token.text for token in tokens if token.channel == channel)


def test_an_answer_with_its_figures(server: FakeChatServer) -> None:
    server.key = KEY
    client = client_of(server, key=KEY)
    assert (client.info.name, client.info.ctx, client.info.backend) == ("tiny", 4096, "remote")
    assert "127.0.0.1" in client.info.notes[0]
    assert client.view() is None
    *tokens, last = client.generate(HI)
    assert [token.text for token in tokens if isinstance(token, Token)] == ["Hello", ", wörld"]
    assert isinstance(last, Done)
    done = last.completion
    assert (done.text, done.thinking, done.stop_reason) == ("Hello, wörld", "", "stop")
    assert (done.prompt_tokens, done.cached_tokens, done.completion_tokens, done.thinking_tokens) == (9, 5, 4, None)
    assert done.timings.ttft_ms > 0
    assert (done.timings.prefill_tps, done.timings.decode_tps, done.work) == (None,) * 3
    assert done.memory == MemoryFigures()
    assert {seen.key for seen in server.seen} == {KEY}
    assert server.seen[-1].path == "/v1/chat/completions"
    assert server.seen[-1].body == {
        "model": "tiny",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_what_was_chosen_is_asked_for(server: FakeChatServer) -> None:
    sampling = Sampling(0.5, 40, 0.9, 0.05, 1.1, 0.1, 0.2, {7: -1.0}, 42)
    tool = {"type": "function", "function": {"name": "f"}}
    ask(server, request=Request(HI.messages, None, sampling, 99, ("END",), "off", (tool,)))
    body = server.seen[-1].body
    assert {name: body[name] for name in ("temperature", "top_k", "top_p", "min_p")} == {
        "temperature": 0.5,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.05,
    }
    assert body["repeat_penalty"] == body["repetition_penalty"] == 1.1
    assert (body["presence_penalty"], body["frequency_penalty"], body["seed"]) == (0.1, 0.2, 42)
    assert (body["logit_bias"], body["max_tokens"], body["stop"]) == ({"7": -1.0}, 99, ["END"])
    assert (body["tools"], body["chat_template_kwargs"]) == (
        [tool],
        {"enable_thinking": False, "reasoning_effort": "low"},
    )


def test_a_raw_prompt_goes_to_completions(server: FakeChatServer) -> None:
    chunks = (
        event(choices=[{"text": "Paris", "finish_reason": None}]),
        event(choices=[{"text": "", "finish_reason": "length"}]),
    )
    tokens, done = ask(server, Reply((*chunks, DONE)), Request(prompt="The capital of France is"))
    assert (text_of(tokens), done.stop_reason) == ("Paris", "length")
    assert server.seen[-1].path == "/v1/completions"
    assert server.seen[-1].body["prompt"] == "The capital of France is"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_thinking_has_a_channel_of_its_own(server: FakeChatServer, name: str) -> None:
    reply = Reply(
        (delta(**{name: "hm"}), delta(content=None, **{name: "m"}), delta(content="Yes"), delta("stop"), DONE)
    )
    tokens, done = ask(server, reply)
    assert (text_of(tokens, "thinking"), text_of(tokens)) == ("hmm", "Yes") == (done.thinking, done.text)


def test_thinking_in_tags_is_told_apart_at_the_start_only(server: FakeChatServer) -> None:
    pieces = ("<thi", "nk>\nhm", "m</th", "ink>\n\nUse ", "<think>", " tags <thi")
    tokens, done = ask(server, Reply((*(delta(content=piece) for piece in pieces), delta("stop"), DONE)))
    assert (text_of(tokens, "thinking"), text_of(tokens)) == ("hmm", "Use <think> tags <thi")
    assert (done.thinking, done.text) == ("hmm", "Use <think> tags <thi")
    assert ask(server, Reply((delta(content="<thi"), delta("stop"), DONE)))[1].text == "<thi"


STREAM = b"".join(HELLO.pieces)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(tuple(STREAM[i : i + 1] for i in range(len(STREAM)))),
        Reply((STREAM,), end="chunked"),
        Reply(HELLO.pieces, end="chunked"),
        Reply((b"\xef\xbb\xbf: ping\r\n\r\nevent: x\r\nid: 3\r\nretry: 5\r\n" + STREAM.replace(b"\n", b"\r\n"),)),
        Reply((STREAM.replace(b"data: ", b"data:"),)),
        Reply((STREAM.removesuffix(DONE),)),
        Reply((STREAM.replace(b', "object', b',\ndata: "object'), DONE)),
        Reply((STREAM + b"data: what comes after the end is not read\n\n",), end="stall"),
    ],
    ids=["bytes", "one chunk", "chunks", "crlf, bom, comments", "no space", "no DONE", "again", "open after DONE"],
)
def test_streams_of_every_kind(server: FakeChatServer, reply: Reply) -> None:
    tokens, done = ask(server, reply)
    assert text_of(tokens) == done.text == "Hello, wörld"
    assert done.completion_tokens == 4


def test_data_of_several_lines_is_one_event(server: FakeChatServer) -> None:
    lines = b'data: {"choices":\ndata: [{"delta": {"content": "two"},\ndata: "finish_reason": "stop"}]}\n\n'
    assert ask(server, Reply((lines, DONE)))[1].text == "two"


def test_a_server_that_does_not_stream(server: FakeChatServer) -> None:
    whole = {"choices": [{"message": {"content": "all at once", "reasoning_content": "hm"}, "finish_reason": "stop"}]}
    _, done = ask(server, Reply((json.dumps(whole).encode(),), headers=JSON))
    assert (done.text, done.thinking) == ("all at once", "hm")
    assert any("no counts" in note for note in done.notes)


def test_what_a_server_does_not_take_is_left_out_and_said(server: FakeChatServer) -> None:
    server.replies = [failure(400, "Unrecognized argument: top_k"), failure(422, "extra: stream_options"), HELLO]
    *_, last = client_of(server).generate(Request(HI.messages, sampling=Sampling(top_k=5, top_p=0.5)))
    assert isinstance(last, Done)
    assert [note.split(":")[0] for note in last.completion.notes[1:]] == [
        "the server does not take top_k",
        "the server does not take stream_options",
    ]
    assert [("top_k" in seen.body, "stream_options" in seen.body) for seen in server.seen[1:]] == [
        (True, True),
        (False, True),
        (False, False),
    ]
    assert server.seen[-1].body["top_p"] == 0.5


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (failure(401, f"Incorrect API key: {KEY}"), UsageError, "does not accept the key: Incorrect API key: …"),
        (failure(403, "no"), UsageError, "does not accept the key"),
        (failure(404, "The model `tiny` does not exist"), NotFoundError, "has no model tiny"),
        (failure(404, "Not Found"), NotFoundError, "no chat at /v1"),
        (failure(405), NotFoundError, "no chat at /v1"),
        (failure(400, "This model's maximum context length is 4096 tokens"), PromptTooLongError, "too long for"),
        (failure(400, "exceed_context_size_error"), PromptTooLongError, "too long for"),
        (failure(400, "temperature must be below 2"), UsageError, "refuses the request .status 400.: temperature"),
        (failure(429, "quota"), EngineError, "slow down: quota"),
        (failure(500, "CUDA error"), EngineError, "an error of its own .status 500.: CUDA error"),
        (Reply((b'{"detail": [{"msg": "field required"}]}',), 422, JSON), UsageError, "422.: field required"),
        (Reply((b'{"message": "\x1b]0;x\x07odd"}',), 400, JSON), UsageError, "400.: odd$"),
        (Reply((b"<html>Bad gateway</html>",), 502, {}), EngineError, r"\(status 502\)$"),
        (
            Reply((b"<html>Hello</html>",), 200, {"Content-Type": "text/html"}),
            EngineError,
            "not in the OpenAI protocol",
        ),
        (Reply((b"x",), 302, {"Location": "http://evil.example/"}), EngineError, "sends us on to http://evil.example/"),
        (Reply((b"[1]",), 200, JSON), EngineDiedError, "not JSON of this protocol"),
        (Reply((b"data: {oops\n\n",)), EngineDiedError, "not JSON of this protocol"),
        (Reply((b"data: [1]\n\n",)), EngineDiedError, "not JSON of this protocol"),
        (Reply((b"data: " + b"[" * 100_000 + b"\n\n",)), EngineDiedError, "not JSON of this protocol"),
        (Reply((b"data: " + b"x" * 2_000_000,)), EngineDiedError, "more than 1,048,576 bytes"),
        (Reply((HELLO.pieces[1], b"y")), EngineDiedError, "broke off in the middle"),
        (Reply((b"",)), EngineError, "before it began"),
        (Reply((b"x",), 200, {**HELLO.headers, "Content-Encoding": "gzip"}), EngineError, "compressed"),
        (Reply((event(error={"message": "out of memory", "code": 500}),)), EngineError, "500.: out of memory"),
        (Reply((event(error="overloaded"),)), EngineError, "overloaded"),
    ],
)
def test_every_refusal_says_what_happened(server: FakeChatServer, reply: Reply, kind: type, says: str) -> None:
    client = client_of(server, key=KEY)
    server.replies = [reply]
    with pytest.raises(kind, match=says) as caught:
        list(client.generate(HI))
    error = caught.value
    assert isinstance(error, LocalrunError)
    assert KEY not in error.message + error.hint
    assert error.hint
    assert "\x1b" not in error.message
    server.replies = [HELLO]
    *_, last = client.generate(HI)
    assert isinstance(last, Done)


@pytest.mark.parametrize(
    ("pieces", "end"),
    [
        (HELLO.pieces[:3], "close"),
        (HELLO.pieces[:3], "reset"),
        (HELLO.pieces[:3], "cut chunk"),
        ((*HELLO.pieces[:3], HELLO.pieces[3][:20]), "close"),
        ((*HELLO.pieces[:3], b"data: {broken\n\n"), "close"),
        ((*HELLO.pieces[:3], event(error={"message": "crashed"})), "close"),
    ],
)
def test_a_cut_answer_keeps_what_had_arrived(server: FakeChatServer, pieces: tuple[bytes, ...], end: str) -> None:
    said, error = said_before_the_end(server, Reply(pieces, end=end))
    assert said == "Hello, wörld"
    assert isinstance(error, EngineError)
    assert error.hint


def test_a_stream_of_nothing_is_asked_again_as_a_whole(server: FakeChatServer) -> None:
    server.replies = [Reply((b"",)), failure(400, "This model's maximum context length is 512 tokens")]
    with pytest.raises(PromptTooLongError, match="512"):
        list(client_of(server).generate(HI))
    assert [seen.body["stream"] for seen in server.seen[1:]] == [True, False]


def test_retry_after_is_passed_on(server: FakeChatServer) -> None:
    _, error = said_before_the_end(server, failure(429, "slow", **{"Retry-After": "17"}))
    assert error.hint == "try again in 17 s"


def test_a_silent_server_times_out(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_http, "IDLE_SECONDS", 1.0)
    said, error = said_before_the_end(server, Reply(HELLO.pieces[:3], end="stall"))
    assert said == "Hello, wörld"
    assert "no answer in time" in error.message


def test_an_answer_without_end_is_ended(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_http, "MAX_ANSWER", 10_000)
    said, error = said_before_the_end(server, Reply((delta(content="x" * 100),) * 1000))
    assert 0 < len(said) < 10_000
    assert "more than 10,000 bytes" in error.message


@pytest.mark.parametrize("pieces", [HELLO.pieces[:3], ()], ids=["in the middle", "before the first token"])
def test_cancel_hangs_up_at_once(server: FakeChatServer, pieces: tuple[bytes, ...]) -> None:
    server.replies = [Reply(pieces, end="stall")]
    expected = "Hello, wörld" if pieces else ""
    generation, said = client_of(server).generate(HI), ""

    def cancel() -> None:
        until(lambda: said == expected and any(seen.method == "POST" for seen in server.seen))
        generation.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    for each in generation:  # without a cancel it would stall for ever
        said += each.text if isinstance(each, Token) else ""
    canceller.join()
    assert isinstance(each, Done)
    assert each.completion.stop_reason == "cancelled"
    assert each.completion.text == expected
    assert server.hung_up.wait(PATIENCE)


def test_leaving_the_stream_hangs_up(server: FakeChatServer) -> None:
    server.replies = [Reply(HELLO.pieces[:3], end="stall")]
    with client_of(server) as client:
        for _ in client.generate(HI):
            break
    assert server.hung_up.wait(PATIENCE)


def test_the_key_goes_to_its_server_only(server: FakeChatServer, capfd: pytest.CaptureFixture[str]) -> None:
    with fake_chat_server() as other:
        server.replies = [Reply((b"",), 307, {"Location": other.url + "/chat/completions"})]
        client = client_of(server, key=KEY)
        with pytest.raises(EngineError, match="sends us on"):
            list(client.generate(HI))
        server.models = Reply((b"",), 301, {"Location": other.url + "/models"})
        with pytest.raises(EngineError, match="sends us on"):
            client_of(server, key=KEY)
        assert other.seen == []
    assert KEY not in repr(client._endpoint) + repr(client.info) + repr(Endpoint("x", "http://y", KEY))
    assert KEY not in "".join(capfd.readouterr())


def test_models_are_listed_and_found(server: FakeChatServer) -> None:
    endpoint = Endpoint("lab", server.url)
    server.models = [
        {"id": "a", "meta": {"n_ctx": 512, "n_ctx_train": 4096}},
        {"id": "b", "max_model_len": "x"},
        {"id": 5},
        {},
    ]
    assert list_models(endpoint) == (OfferedModel("a", 512), OfferedModel("b"))
    assert RemoteClient(endpoint).info.name == "a"
    with pytest.raises(NotFoundError, match="has no model c") as caught:
        client_of(server, "c")
    assert "a, b" in caught.value.hint
    server.models = []
    with pytest.raises(NotFoundError, match="has no models"):
        RemoteClient(endpoint)
    assert client_of(server, "believed").info.name == "believed"
    server.models = failure(404)
    with pytest.raises(NotFoundError, match="no list of models"):
        RemoteClient(endpoint)
    assert client_of(server, "believed").info.name == "believed"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failure(401, "who are you?"), UsageError),
        (Reply((b"<html>",), 200, {}), EngineError),
        (Reply((b'{"data": 5}',), 200, JSON), EngineError),
        (Reply((b'"text"',), 200, JSON), EngineError),
        (Reply((b"[" * 100_000,), 200, JSON), EngineError),
        (Reply((b"{",), 200, {**JSON, "Content-Length": "500"}, end="close"), EngineError),
    ],
)
def test_a_list_that_is_none(server: FakeChatServer, reply: Reply, kind: type) -> None:
    server.models = reply
    with pytest.raises(kind):
        list_models(Endpoint("lab", server.url))


def test_a_list_that_drips(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_pages, "LIST_SECONDS", 0.4)
    server.models = Reply((b'{"data": [',), 200, JSON, end="stall")
    with pytest.raises(EngineError, match=r"no answer in time|cut short|hung up|cannot be reached"):
        list_models(Endpoint("lab", server.url))


def test_a_refused_connection_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(EngineError, match=r"nothing listens at 127\.0\.0\.1"):
            RemoteClient(Endpoint("lab", url))
    with pytest.raises(EngineError, match="cannot be reached"):
        RemoteClient(Endpoint("lab", "http://a..b/v1"))


def test_plain_http_where_tls_is_expected(server: FakeChatServer) -> None:
    with pytest.raises(EngineError, match=r"does not speak TLS|cannot be reached") as caught:
        RemoteClient(Endpoint("lab", server.url.replace("http://", "https://")))
    assert "http://" in caught.value.hint


def test_a_certificate_that_is_not_trusted() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    told = remote_http.unreachable(place_of(Endpoint("lab", "https://lab.example/v1")), error)
    assert "self-signed certificate" in told.message
    assert "SSL_CERT_FILE" in told.hint


def test_offline_spares_this_machine_only(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_OFFLINE", "1")
    assert client_of(server).info.name == "tiny"

    def no_socket(*args: Any, **more: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    monkeypatch.setattr(socket, "getaddrinfo", no_socket)
    with pytest.raises(UsageError, match="offline"):
        RemoteClient(Endpoint("lab", "https://lab.example/v1", model="m"))


def test_a_proxy_is_not_asked_for_this_machine(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    assert client_of(server).info.name == "tiny"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/v1"),
        ("http://h:8000/", "/v1"),
        ("https://h/v1/", "/v1"),
        ("https://h/v1/chat/completions", "/v1"),
        ("https://h/v1/models", "/v1"),
        ("https://h/api/openai/v1", "/api/openai/v1"),
        (" http://[::1]:8000/v1 ", "/v1"),
    ],
)
def test_urls_are_completed_to_an_api_path(url: str, path: str) -> None:
    assert place_of(Endpoint("x", url)).path == path


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("", ""),
        ("h:8000", ""),
        ("ftp://h/", ""),
        ("http://", ""),
        ("http://h:99999/v1", ""),
        ("http://user:pass@h/v1", ""),
        ("http://h/v1?key=x", ""),
        ("http://h/\r\nX: y", ""),
        ("http://hö/v1", ""),
        ("http://h/v1", "two words"),
        ("http://h/v1", "x\r\nHost: evil"),
        ("http://h/v1", "schlüssel"),
    ],
)
def test_addresses_and_keys_that_are_none(url: str, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        RemoteClient(Endpoint("x", url, key, "m"))
    assert not key or key not in caught.value.message


def test_a_request_that_is_no_json_is_the_callers_error(server: FakeChatServer) -> None:
    with pytest.raises(UsageError, match="cannot be sent"):
        list(client_of(server).generate(Request(({"role": "user", "content": object()},))))


def test_a_server_in_the_clear_is_told() -> None:
    assert not place_of(Endpoint("x", "http://192.0.2.1/v1")).is_here
    assert place_of(Endpoint("x", "http://localhost:1/v1")).is_here


def test_a_schema_becomes_a_response_format(server: FakeChatServer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    for is_lenient in (False, True):
        ask(server, HELLO, replace(HI, constraint=of_schema(schema, is_lenient)))
        assert server.seen[-1].body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": not is_lenient},
        }


def test_a_server_that_knows_schemas_by_another_name_gets_them_so(server: FakeChatServer) -> None:
    """llama_cpp.server refuses `json_schema` with status 500; it is asked for the next answer as it wants it."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    refusal = failure(500, "1 validation error: 'response_format', 'type': Input should be 'text' or 'json_object'")
    client, request = client_of(server), replace(HI, constraint=of_schema(schema))
    server.replies = [refusal, HELLO, HELLO]
    for _ in range(2):
        *_, last = client.generate(request)
        assert isinstance(last, Done)
        assert not any("does not take" in note for note in last.completion.notes)
    formats = [seen.body["response_format"] for seen in server.seen if seen.method == "POST"]
    assert [one["type"] for one in formats] == ["json_schema", "json_object", "json_object"]
    assert formats[1] == formats[2] == {"type": "json_object", "schema": schema}


@pytest.mark.parametrize("constraint", [Constraint("regex", "a"), Constraint("lark", "start: x")])
def test_what_a_server_cannot_be_asked_for_is_refused(server: FakeChatServer, constraint: Constraint) -> None:
    with pytest.raises(UsageError, match="server"):
        client_of(server).generate(replace(HI, constraint=constraint))
