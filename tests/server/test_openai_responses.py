"""Responses, as OpenAI's own client and its stream helper read them, and as codex sends them.

What went wrong in other servers is named by their reports.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.errors import EngineDiedError, PromptTooLongError
from localrun.base.request import LoadOptions, Request
from localrun.server import service as service_module
from localrun.server.request.truncation import drop_turns

AT = "/v1/responses"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def text_item(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "id": f"msg_{len(texts)}", "role": role, "content": content}


CALL = {"type": "function_call", "status": "completed", "id": "fc_1", "name": "sh", "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "id": "fco_1", "call_id": "c1"}
TOOLS = [
    {"type": "function", "name": "sh", "description": "d", "strict": False, "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "agents",
        "description": "d",
        "tools": [{"type": "function", "name": "close_agent", "strict": False, "parameters": {"type": "object"}}],
    },
    {"type": "web_search", "external_web_access": False},
    {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
]
CODEX: dict[str, Any] = {
    "model": "builtin",
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "tools": TOOLS,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"summary": "auto"},
    "prompt_cache_key": "thread",
    "client_metadata": {"turn_id": "1"},
    "input": [
        text_item("developer", "base"),
        text_item("developer", "skills", "more"),
        text_item("user", "<environment_context>"),
        text_item("user", "run it"),
        {**CALL, "arguments": '{"cmd": "echo hi"}'},
        {**OUTPUT, "output": "hi"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}],
            "encrypted_content": None,
        },
        text_item("assistant", "done"),
        text_item("user", "~~ok"),
    ],
}


def events_of(http: httpx.Client, body: dict[str, Any]) -> list[Any]:
    with http.stream("POST", AT, json=body) as answer:
        assert answer.status_code == 200, answer.read()
        lines = [line for line in answer.iter_lines() if line]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def test_whole_answer(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="builtin", input="~~hello", instructions="be brief")
    assert (answer.output_text, answer.status, answer.model) == ("hello", "completed", "builtin")
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.usage
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (3, 7, 10)
    assert answer.usage.output_tokens_details.reasoning_tokens == 2


def test_stream_helper_sees_the_same_answer(client: openai.OpenAI) -> None:
    """A delta for every token (obsidian-copilot#2389), and for thoughts, too (pi#4193)."""
    with client.responses.stream(model="builtin", input="~~a b") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_text.delta", "reasoning_text.delta", "reasoning_text.done"),
        *("output_item.done", "output_item.added", "content_part.added"),
        *(["output_text.delta"] * 3),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "a b"
    assert final.output_text == "a b"
    assert final.usage


def test_every_event_of_an_item_says_which(http: httpx.Client) -> None:
    for event in events_of(http, {"input": "~x", "stream": True}):
        kind = event["type"]
        if "output_item" in kind:
            assert event["item"]["id"]
            assert isinstance(event["output_index"], int)
        elif "delta" in kind or ".done" in kind or "part" in kind:
            assert event["item_id"]
            assert (event["content_index"], event["output_index"]) == (0, int("output_text" in kind or "part" in kind))


def test_codex_shapes_are_taken(http: httpx.Client, fake: FakeClient) -> None:
    """Tools of kinds that there are none of here are no error (llama.cpp#20156, codex#10635, ollama#17618)."""
    final = events_of(http, CODEX)[-1]["response"]
    assert final["status"] == "completed"
    request = fake.requests[-1]
    assert [message["role"] for message in request.messages] == [
        *("developer", "developer", "user", "user", "assistant", "tool", "assistant", "user")
    ]
    call, answer = request.messages[4], request.messages[6]
    assert call["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "sh", "arguments": '{"cmd": "echo hi"}'},
    }
    assert (answer["content"], answer["reasoning_content"]) == ("done", "hm")
    assert [tool["function"]["name"] for tool in request.tools] == ["sh", "close_agent", "apply_patch"]
    assert [note for note in final["localrun"]["ignored"] if note.startswith("tools")] == ["tools[2] (web_search)"]
    thought = final["output"][0]["encrypted_content"]
    assert base64.b64decode(thought.removeprefix("lr1.")) == b"~~"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([{**OUTPUT, "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}], "a\nb"),
        ([{**OUTPUT, "output": [{"type": "input_image", "image_url": "data:"}]}], "[input_image: not shown"),
        ([{**CALL, "arguments": '{"cmd": "ec'}, {**OUTPUT, "output": "cut"}], "cut"),
        ([{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "*** Begin"}], ""),
        ([{"type": "custom_tool_call_output", "call_id": "c", "output": "fine"}], "fine"),
        ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": None}], ""),
        ([{"type": "reasoning", "summary": [], "content": [], "encrypted_content": "gAAA"}], ""),
        ([{"type": "local_shell_call", "action": {}}, {"type": "compaction", "encrypted_content": "x"}], "hi"),
        ([{"role": "assistant", "content": "plain"}], "plain"),
    ],
)
def test_history_is_never_refused(
    http: httpx.Client, fake: FakeClient, items: list[dict[str, Any]], expected: str
) -> None:
    """Outputs as parts (llama.cpp#23465), calls that were cut (vLLM#47761), items of other servers."""
    body = {"input": [text_item("user", "hi"), *items], "store": False}
    answer = http.post(AT, json=body)
    assert answer.status_code == 200, answer.text
    assert str(fake.requests[-1].messages[-1]["content"]).startswith(expected)


def test_sealed_thoughts_come_back(http: httpx.Client, fake: FakeClient) -> None:
    body = {"input": "~~x", "store": False, "include": ["reasoning.encrypted_content"]}
    thought, said = http.post(AT, json=body).json()["output"]
    http.post(AT, json={"input": [{**thought, "content": []}, said, text_item("user", "y")], "store": False})
    assert fake.requests[-1].messages[0]["reasoning_content"] == "~~"


def test_a_chain_is_rebuilt(client: openai.OpenAI, fake: FakeClient) -> None:
    """Every turn goes on from the ones before, from the ids that the engine had."""
    first = client.responses.create(model="builtin", input="~one", instructions="first only")
    second = client.responses.create(model="builtin", input="two", previous_response_id=first.id)
    with client.responses.stream(model="builtin", input="three", previous_response_id=second.id) as stream:
        third = stream.get_final_response()
    said = [(message["role"], message["content"]) for message in fake.requests[-1].messages]
    assert said == [("user", "~one"), ("assistant", "one"), ("user", "two"), ("assistant", "two"), ("user", "three")]
    assert fake.requests[-1].messages[1]["reasoning_content"] == "~"
    assert fake.requests[-1].known_ids
    assert third.previous_response_id == second.id


def test_stored_responses_are_given_back_and_dropped(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="builtin", input="keep me")
    assert client.responses.retrieve(answer.id).output_text == "keep me"
    items = client.responses.input_items.list(answer.id, order="asc").data
    assert items[0].model_dump()["content"][0]["text"] == "keep me"
    client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="builtin", input="x", previous_response_id=answer.id)
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


def test_what_is_not_to_be_stored_is_not(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="builtin", input="x", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_input_items_come_in_pages(http: httpx.Client) -> None:
    items = [text_item("user", str(number)) | {"id": f"msg_{number}"} for number in range(5)]
    at = f"{AT}/{http.post(AT, json={'input': items}).json()['id']}/input_items"
    page = http.get(at, params={"limit": 2}).json()
    assert ([item["id"] for item in page["data"]], page["has_more"]) == (["msg_4", "msg_3"], True)
    page = http.get(at, params={"limit": 2, "after": "msg_1"}).json()
    assert ([item["id"] for item in page["data"]], page["has_more"]) == (["msg_0"], False)


def test_an_answer_under_way_is_cancelled_by_its_id(client: openai.OpenAI) -> None:
    """It has an end (openclaw#98575), and what was said is kept."""
    seen = []
    for event in client.responses.create(model="builtin", input="ab…", stream=True):
        seen.append(event)
        if event.type == "response.output_text.delta" and event.delta == "b":
            id = seen[0].response.id
            assert client.responses.retrieve(id).status == "in_progress"
            assert client.responses.cancel(id).status == "cancelled"
    assert seen[-1].type == "response.incomplete"
    assert client.responses.retrieve(id).output_text == "ab"
    assert client.responses.cancel(id).status == "cancelled", "a second time does no harm"


def test_a_client_that_leaves_finds_what_was_said(http: httpx.Client, served: Served) -> None:
    with http.stream("POST", AT, json={"input": "ab…", "stream": True}) as answer:
        id = next(line for line in answer.iter_lines() if "resp_" in line).partition('"id":"')[2][:37]
    until(lambda: http.get(f"{AT}/{id}").json().get("status") == "cancelled")


def test_an_empty_input_loads_the_model(http: httpx.Client, fake: FakeClient) -> None:
    before = len(fake.requests)
    answer = http.post(AT, json={"model": "builtin", "input": "", "max_output_tokens": 1}).json()
    assert (answer["status"], answer["output"], answer["usage"]["total_tokens"]) == ("completed", [], 0)
    kinds = [event["type"] for event in events_of(http, {"input": [], "stream": True})]
    assert kinds == ["response.created", "response.in_progress", "response.completed"]
    assert len(fake.requests) == before


def test_tokens_are_counted_without_an_answer(client: openai.OpenAI, fake: FakeClient) -> None:
    before = len(fake.requests)
    counted = client.responses.input_tokens.count(model="builtin", input="12345", instructions="123")
    assert counted.input_tokens == 8
    assert len(fake.requests) == before


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tools": [{"type": "function", "name": "f", "strict": "yes"}]}, "tools[0].strict"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"truncation": "some"}, "truncation"),
        ({"reasoning": {"effort": "a lot"}}, "reasoning.effort"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [text_item("user") | {"content": [{"type": "input_audio"}]}]}, "input[0].content[0].type"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, body: dict[str, Any], param: str) -> None:
    answer = http.post(AT, json={"input": "x", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_compaction_is_refused_and_what_to_do_instead_said(http: httpx.Client) -> None:
    answer = http.post(f"{AT}/compact", json={"input": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_implemented")
    assert "truncation" in answer.json()["error"]["message"]


def failing(request: Request) -> str:
    """The last message, or what it names."""
    text = str(request.messages[-1]["content"])
    if text == "die":
        raise EngineDiedError("the engine is gone")
    if len(request.messages) > 3:
        raise PromptTooLongError("too long", n_tokens=400)
    return text


@pytest.fixture(scope="module")
def small() -> Iterator[httpx.Client]:
    """A context of 128 tokens, one for each character, and an engine that dies when it is told to."""
    fake = FakeClient(LoadOptions(Path()), failing)
    with serving(lambda choice: fake) as running, httpx.Client(base_url=running.url, timeout=60) as http:
        yield http


def test_an_engine_that_dies_is_said_within_the_stream(small: httpx.Client) -> None:
    """A stream has an end (openclaw#98575), and no 503, after which codex asks again 24 times."""
    *_, last = events_of(small, {"input": "die", "stream": True})
    assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "server_error")
    assert small.get(f"{AT}/{last['response']['id']}").json()["status"] == "failed"
    assert small.post(AT, json={"input": "die"}).status_code == 503


ROLES = ("system", "user", "assistant", "user", "assistant", "user")
LONG = [text_item(role, str(number) * 30) for number, role in enumerate(ROLES)]


def test_a_prompt_that_is_too_long_is_refused_before_a_byte(small: httpx.Client) -> None:
    answer = small.post(AT, json={"input": LONG, "stream": True})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_truncation_drops_the_oldest_turns_and_says_so(small: httpx.Client) -> None:
    answer = small.post(AT, json={"input": LONG, "truncation": "auto"}).json()
    assert answer["output"][0]["content"][0]["text"] == "5" * 30
    assert answer["localrun"]["horizon"] == {"dropped_turns": 2, "dropped_tokens": 120}
    whole = small.post(AT, json={"input": LONG[:2], "truncation": "auto"}).json()
    assert whole["localrun"]["horizon"] is None


def test_a_tool_that_a_dropped_turn_described_is_in_the_list() -> None:
    client = FakeClient(LoadOptions(Path()), failing)
    tool = {"type": "function", "function": {"name": "f"}}
    messages = tuple({"role": role, "content": "x" * 30} for role in ROLES)
    request = Request(messages, tools=(tool,), described_tools=("f",))
    fitted, dropped = drop_turns(client, request)
    assert dropped is not None
    assert (fitted.described_tools, fitted.tools) == ((), (tool,))
    whole, _ = drop_turns(client, replace(request, messages=messages[:2]))
    assert whole.described_tools == ("f",)


def test_streams_are_held_open_while_there_is_no_room(
    http: httpx.Client, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No stream is silent (llama.cpp#25241, ds4#222), and pings are events of the protocol: comments keep no codex
    waiting."""
    monkeypatch.setattr(service_module, "MAX_WAITING", 1 - service_module.USUAL_PARALLEL)
    monkeypatch.setattr("localrun.server.wire.PING_SECONDS", 0.05)
    blocking = client.responses.create(model="builtin", input="…", stream=True)
    first = next(event for event in blocking if event.type == "response.created").response.id
    assert http.post(AT, json={"input": "x"}).status_code == 429
    held = client.responses.create(model="builtin", input="in the end", stream=True)
    kinds = [next(held).type for _ in range(4)]
    assert kinds == ["response.created", *["response.in_progress"] * 3]
    client.responses.cancel(first)
    *_, last = held
    assert last.type == "response.completed"
    assert last.response.output_text == "in the end"
    blocking.close()


def test_a_stream_that_is_held_ends_as_soon_as_it_is_cancelled(
    client: openai.OpenAI, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "MAX_WAITING", 1 - service_module.USUAL_PARALLEL)
    monkeypatch.setattr("localrun.server.wire.PING_SECONDS", 0.05)
    blocking = client.responses.create(model="builtin", input="…", stream=True)
    first = next(event for event in blocking if event.type == "response.created").response.id
    held = client.responses.create(model="builtin", input="never asked", stream=True)
    event: Any = next(held)
    assert client.responses.cancel(event.response.id).status == "cancelled"
    last: Any = list(held)[-1]
    assert (last.type, last.response.status) == ("response.incomplete", "cancelled")
    assert client.responses.retrieve(event.response.id).status == "cancelled"
    client.responses.cancel(first)
    assert fake.requests[-1].messages[-1]["content"] == "…"
    blocking.close()
