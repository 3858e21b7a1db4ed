"""Manners of vLLM, llama.cpp, mlx_lm, transformers and OpenAI: fields, figures and ends that only one of them has."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, event, failure, fake_chat_server

from localrun.base.constraint import of_schema
from localrun.base.errors import EngineDiedError, EngineError, LocalrunError, PromptTooLongError, UsageError
from localrun.base.events import Completion, Done, Event, Prefill, Token
from localrun.base.request import Priority, Request, Think
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

HI = Request(messages=({"role": "user", "content": "Hi"},))
BEGUN = replace(HI, messages=(*HI.messages, {"role": "assistant", "content": "1, 2,"}), continues=True)
WHOLE = Reply((delta(content="Yes"), delta("stop"), DONE))


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def client_of(server: FakeChatServer, owner: str = "") -> RemoteClient:
    server.models = [{"id": "tiny", "max_model_len": 1024, "owned_by": owner}]
    return RemoteClient(Endpoint("lab", server.url, model="tiny"))


def ask(client: RemoteClient, server: FakeChatServer, *replies: Reply, request: Request = HI) -> list[Event]:
    server.replies = list(replies)
    return list(client.generate(request))


def end_of(events: list[Event]) -> Completion:
    assert isinstance(events[-1], Done)
    return events[-1].completion


def told(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Token) and event.channel == "answer")


# ---- fields


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_an_answer_is_gone_on_with_where_the_engine_can(server: FakeChatServer, owner: str) -> None:
    ask(client_of(server, owner), server, WHOLE, request=BEGUN)
    body = server.seen[-1].body
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert body["messages"][-1] == {"role": "assistant", "content": "1, 2,"}


@pytest.mark.parametrize(("owner", "begun"), [("", "1, 2,"), ("vllm", "")])
def test_else_it_is_refused_before_anything_is_sent(server: FakeChatServer, owner: str, begun: str) -> None:
    client = client_of(server, owner)
    cut = {"role": "assistant", "content": begun, "reasoning_content": "hm"}
    with pytest.raises(UsageError, match="cannot be gone on with"):
        client.generate(replace(BEGUN, messages=(*HI.messages, cut)))
    assert not [seen for seen in server.seen if seen.method == "POST"]


def test_no_field_of_an_engine_goes_to_another(server: FakeChatServer) -> None:
    ask(client_of(server), server, WHOLE)
    assert set(server.seen[-1].body) == {"model", "stream", "stream_options", "messages"}
    assert server.seen[-1].body["stream_options"] == {"include_usage": True}


def test_a_refused_field_is_sent_once_and_told_once(server: FakeChatServer) -> None:
    client = client_of(server)
    request = replace(HI, sampling=replace(HI.sampling, top_k=40, min_p=0.1))
    first = end_of(ask(client, server, failure(422, "Unexpected keys: top_k, min_p"), WHOLE, request=request))
    second = end_of(ask(client, server, WHOLE, request=request))
    assert [note for note in first.notes if "top_k" in note or "min_p" in note] == [
        "the server does not take top_k: asked without it",
        "the server does not take min_p: asked without it",
    ]
    assert not [note for note in second.notes if "does not take" in note]
    assert [len(seen.body.keys() & {"top_k", "min_p"}) for seen in server.seen if seen.method == "POST"] == [2, 0, 0]


def test_a_limit_by_its_newer_name(server: FakeChatServer) -> None:
    client = client_of(server)
    refusal = failure(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    request = replace(HI, max_tokens=9)
    ask(client, server, refusal, WHOLE, request=request)
    ask(client, server, WHOLE, request=request)
    asked = [seen.body for seen in server.seen if seen.method == "POST"]
    assert [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in asked] == [
        (9, None),
        (None, 9),
        (None, 9),
    ]


@pytest.mark.parametrize(("think", "effort"), [("on", "high"), ("off", "low"), ("auto", None)])
def test_the_wish_to_think_in_all_its_spellings(server: FakeChatServer, think: Think, effort: str | None) -> None:
    for owner in ("vllm", ""):
        ask(client_of(server, owner), server, WHOLE, request=replace(HI, think=think))
        body = server.seen[-1].body
        wish = {"enable_thinking": think == "on", "reasoning_effort": effort} if effort else None
        assert body.get("chat_template_kwargs") == wish
        assert body.get("reasoning_effort") == (effort if owner else None)


@pytest.mark.parametrize(("priority", "rank"), [("interactive", -1), ("api", None), ("background", 1)])
def test_a_class_goes_to_the_queues_that_may_heed_it(
    server: FakeChatServer, priority: Priority, rank: int | None
) -> None:
    request = replace(HI, priority=priority)
    ask(client_of(server, "vllm"), server, WHOLE, request=request)
    assert server.seen[-1].body.get("priority") == rank
    server.pages = {"/server_info?config_format=json": {"vllm_config": {"scheduler_config": {"policy": "fcfs"}}}}
    for owner in ("vllm", "llamacpp", ""):
        ask(client_of(server, owner), server, WHOLE, request=request)
        assert "priority" not in server.seen[-1].body


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens=100000 cannot be greater than max_model_len=1024. Please request fewer output tokens.",
        "This model's maximum context length is 1024 tokens. However, you requested 100012 tokens (12 in the messages,"
        " 100000 in the completion).",
    ],
)
def test_an_answer_longer_than_the_context_ends_with_it(server: FakeChatServer, words: str) -> None:
    client = client_of(server, "vllm")
    done = end_of(ask(client, server, failure(400, words), WHOLE, request=replace(HI, max_tokens=100_000)))
    assert done.text == "Yes"
    assert any("no room for 100,000 tokens" in note for note in done.notes)
    ask(client, server, WHOLE, request=replace(HI, max_tokens=5))
    assert server.seen[-1].body["max_tokens"] == 5


def test_a_prompt_longer_than_the_context_is_too_long(server: FakeChatServer) -> None:
    words = "max_tokens must be at least 1, got -88: the input has more tokens than max_model_len"
    with pytest.raises(PromptTooLongError):
        ask(client_of(server), server, failure(400, words), request=replace(HI, max_tokens=5))


# ---- figures and stages


def test_progress_of_llama_cpp(server: FakeChatServer) -> None:
    progress = [{"total": 90, "cache": 30, "processed": n, "time_ms": 1} for n in (60, 90)]
    pieces = [event(choices=[], prompt_progress=one) for one in progress]
    events = ask(client_of(server, "llamacpp"), server, Reply((*pieces, delta(content="Yes"), delta("stop"), DONE)))
    assert server.seen[-1].body["return_progress"] is True
    assert events[:2] == [Prefill(60, 30, 90), Prefill(90, 30, 90)]


def test_progress_of_mlx(server: FakeChatServer) -> None:
    events = ask(client_of(server), server, Reply((b": keepalive 30/90\n\n", b": ping\n\n", *WHOLE.pieces)))
    assert events[0] == Prefill(30, 0, 90)
    assert told(events) == "Yes"


def test_a_stopped_answer_is_counted_by_vllm(server: FakeChatServer) -> None:
    counts = {"prompt_tokens": 76, "completion_tokens": 1}
    piece = event(choices=[{"index": 0, "delta": {"content": "Yes"}, "finish_reason": None}], usage=counts)
    server.replies = [Reply((piece,), end="stall")]
    generation = client_of(server, "vllm").generate(HI)
    events = [next(generation)]
    generation.cancel()
    done = end_of([*events, *generation])
    assert (done.stop_reason, done.prompt_tokens, done.completion_tokens) == ("cancelled", 76, 1)
    assert server.seen[-1].body["stream_options"]["continuous_usage_stats"] is True


def test_the_option_that_counts_cached_tokens_is_named_once(server: FakeChatServer) -> None:
    counts = {"prompt_tokens": 76, "completion_tokens": 1}
    uncounted = Reply((delta(content="Yes"), delta("stop"), event(choices=[], usage=counts), DONE))
    client = client_of(server, "vllm")
    first, second = (end_of(ask(client, server, uncounted)).notes for _ in range(2))
    assert len([note for note in first if "--enable-prompt-tokens-details" in note]) == 1
    assert not [note for note in second if "--enable-prompt-tokens-details" in note]
    counted = {**counts, "prompt_tokens_details": {"cached_tokens": 0}}
    known = Reply((delta(content="Yes"), delta("stop"), event(choices=[], usage=counted), DONE))
    for owner, reply in (("vllm", known), ("", uncounted)):
        assert not [note for note in end_of(ask(client_of(server, owner), server, reply)).notes if "--enable" in note]


def test_a_stopped_answer_without_counts_blames_nobody(server: FakeChatServer) -> None:
    server.replies = [Reply((delta(content="Yes"),), end="stall")]
    generation = client_of(server).generate(HI)
    events = [next(generation)]
    generation.cancel()
    assert not any("gives no counts" in note for note in end_of([*events, *generation]).notes)


# ---- ends


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_a_failure_is_no_end(server: FakeChatServer, reason: str) -> None:
    said: list[Event] = []
    server.replies = [Reply((delta(content="Ye"), delta(reason), DONE))]
    with pytest.raises(EngineDiedError, match=reason):
        said += client_of(server).generate(HI)
    assert issubclass(EngineDiedError, EngineError)


@pytest.mark.parametrize(
    ("finish", "stop_reason", "note"),
    [
        ("stop", "stop", None),
        ("length", "length", None),
        ("repetition", "loop", "as a loop"),
        ("content_filter", "stop", "a filter"),
        ("\x1b[2Jodd", "stop", "ended by"),
    ],
)
def test_every_other_end_is_said(server: FakeChatServer, finish: str, stop_reason: str, note: str | None) -> None:
    done = end_of(ask(client_of(server), server, Reply((delta(content="Yes"), delta(finish), DONE))))
    assert done.stop_reason == stop_reason
    ours = [one for one in done.notes if "sent" not in one and "goes to" not in one and "counted" not in one]
    assert len(ours) == (note is not None)
    assert note is None or note in ours[0]
    assert "\x1b" not in "".join(done.notes)


def test_content_in_parts_and_a_refusal(server: FakeChatServer) -> None:
    parts = [{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}, {"type": "image"}, 7]
    assert told(ask(client_of(server), server, Reply((delta(content=parts), delta("stop"), DONE)))) == "Yes"
    events = ask(client_of(server), server, Reply((delta(refusal="I'd "), delta(refusal="not"), delta("stop"), DONE)))
    assert told(events) == end_of(events).text == "I'd not"
    assert end_of(events).notes.count("the model refuses") == 1


@pytest.mark.parametrize("pieces", [("4\n5\n6",), ("4\n", "5", "\n6"), ("4\n5",)])
def test_a_stop_string_that_is_sent_is_cut_off(server: FakeChatServer, pieces: tuple[str, ...]) -> None:
    reply = Reply((*(delta(content=piece) for piece in pieces), delta("stop"), DONE))
    events = ask(client_of(server), server, reply, request=replace(HI, stop=("\n5",)))
    assert told(events) == end_of(events).text == "4"
    assert (end_of(events).stop_reason, end_of(events).stop_string) == ("stop", "\n5")


def test_a_thought_that_the_template_opens(server: FakeChatServer) -> None:
    client = client_of(server)
    reply = Reply((delta(content="hm\n</think>"), delta(content="\n\nYes"), delta("stop"), DONE))
    first = end_of(ask(client, server, reply))
    assert (first.thinking, first.text) == ("hm", "Yes")
    assert any("began with a thought" in note for note in first.notes)
    events = ask(client, server, reply)
    assert told(events) == "Yes"
    assert (end_of(events).thinking, end_of(events).text) == ("hm\n", "Yes")
    off = end_of(ask(client, server, WHOLE, request=replace(HI, think="off")))
    assert (off.thinking, off.text) == ("", "Yes")


@pytest.mark.parametrize(
    ("text", "finish", "is_noted"), [("{}", "stop", False), ("Sure!", "stop", True), ('{"a"', "length", False)]
)
def test_a_server_that_passes_over_a_schema_is_noticed(
    server: FakeChatServer, text: str, finish: str, is_noted: bool
) -> None:
    reply = Reply((delta(content=text), delta(finish), DONE))
    request = replace(HI, constraint=of_schema({"type": "object"}))
    notes = end_of(ask(client_of(server), server, reply, request=request)).notes
    assert bool([note for note in notes if "did not hold to the schema" in note]) == is_noted


# ---- a model by hand


@pytest.mark.parametrize("models", [failure(500, "no cache folder"), failure(404), []])
def test_a_named_model_of_a_server_that_lists_none(server: FakeChatServer, models: Reply | list[object]) -> None:
    server.models = models  # type: ignore[assignment]
    server.replies = [WHOLE]
    client = RemoteClient(Endpoint("lab", server.url, model="mine"))
    assert told(list(client.generate(HI))) == "Yes"
    assert server.seen[-1].body["model"] == "mine"
    with pytest.raises(LocalrunError):
        RemoteClient(Endpoint("lab", server.url))
