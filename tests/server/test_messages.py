"""Anthropic's Messages, as Anthropic's own client reads them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving

from localrun.base.events import Completion, Done, ModelInfo
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.server.anthropic.diagnosis import CacheDiagnostics, SentMessages
from localrun.server.anthropic.messages import MessageCodec
from localrun.server.anthropic.request import read_messages
from localrun.server.request.json_body import parse_json

HI: Any = [{"role": "user", "content": "hi"}]
CALL: Any = {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": {}}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "t1"}
TOOL: Any = {"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}}


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=served.url, api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def real() -> Iterator[anthropic.Anthropic]:
    """A client of the built-in model."""
    path = Path(resource("localrun/builtin/localrun-tiny.gguf"))
    with (
        LocalClient(LoadOptions(path, name="builtin", ctx=512)) as engine,
        serving(lambda choice: engine) as served,
        anthropic.Anthropic(base_url=served.url, api_key="any", max_retries=0) as client,
    ):
        yield client


def ask(client: anthropic.Anthropic, messages: Any = HI, **fields: Any) -> Any:
    return client.messages.create(**{"model": "builtin", "max_tokens": 9, "messages": messages, **fields})


def seen(fake: FakeClient, http: httpx.Client, **body: Any) -> Any:
    """The request that the engine is given for a body."""
    answer = http.post("/v1/messages?beta=true", json={"max_tokens": 9, "messages": HI, **body})
    assert answer.status_code == 200, answer.text
    return fake.requests[-1]


def test_whole_message(client: anthropic.Anthropic) -> None:
    message = ask(client, [{"role": "user", "content": "~~hello"}])
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.content[0].thinking, message.content[0].signature != "") == ("~~", True)
    assert (message.content[1].text, message.stop_reason, message.stop_sequence) == ("hello", "end_turn", None)
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens, message.usage.output_tokens) == (3, 0, 7)
    assert message.usage.output_tokens_details.thinking_tokens == 2
    assert (message.model, message.diagnostics) == ("builtin", None)


@pytest.mark.parametrize("text", ["~a~~b", "", "~", "a"])
def test_a_stream_becomes_the_whole_message(client: anthropic.Anthropic, text: str) -> None:
    messages: Any = [{"role": "user", "content": text}]
    with client.messages.stream(model="builtin", max_tokens=9, messages=messages) as stream:
        final = stream.get_final_message()
    whole = ask(client, messages)
    assert [block.model_dump() for block in final.content] == [block.model_dump() for block in whole.content]
    assert final.usage.model_dump() == whole.usage.model_dump()
    assert (final.stop_reason, final.model) == (whole.stop_reason, whole.model)


def test_events_come_in_their_order(http: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "~a~"}], "stream": True}
    frames = http.post("/v1/messages", json=body).text.strip().split("\n\n")
    pairs = [(frame.split("\n")[0], json.loads(frame.split("\n")[1].removeprefix("data: "))) for frame in frames]
    assert all(event == f"event: {values['type']}" for event, values in pairs)
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    thought = [*block[:2], *block[1:]]  # the second is its signature
    kinds = [values["type"] for _, values in pairs]
    assert kinds == ["message_start", *thought, *block, *thought, "message_delta", "message_stop"]
    indices = [values["index"] for _, values in pairs if "index" in values]
    assert indices == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert [v["delta"]["type"] for _, v in pairs if v["type"] == "content_block_delta"][:2] == [
        "thinking_delta",
        "signature_delta",
    ]


def test_stop_sequence_is_named(real: anthropic.Anthropic) -> None:
    greedy = {"temperature": 0}
    free = ask(real, max_tokens=20, extra_body=greedy).content[0].text
    message = ask(real, max_tokens=20, extra_body=greedy, stop_sequences=["never said", free[3:6]])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", free[3:6])
    assert message.content[0].text == free[: free.index(free[3:6])]


@pytest.mark.parametrize(
    ("written", "reason", "stop", "shown"),
    [
        (9, "length", "", "max_tokens"),
        (8, "length", "", "model_context_window_exceeded"),
        (9, "stop", "END", "stop_sequence"),
        (9, "stop", "", "end_turn"),
        (9, "loop", "", "end_turn"),
        (9, "cancelled", "", "end_turn"),
    ],
)
def test_why_an_answer_ended(written: int, reason: Any, stop: str, shown: str) -> None:
    body = parse_json(json.dumps({"messages": HI, "max_tokens": 9}).encode())
    codec = MessageCodec(read_messages(body), CacheDiagnostics(body, SentMessages()))
    completion = Completion(
        "m", "", "", "", "", reason, 3, 0, written, (), "", 512, 0, stop_string=stop, thinking_tokens=0
    )
    assert f'"stop_reason":"{shown}"' in codec.event(0, Done(completion)).decode()
    info = ModelInfo("m", "", "", "", "", "", 512, 0, 0.0)
    assert (codec.whole(info, [completion])["stop_reason"], codec.end() != b"") == (shown, True)


def test_a_prompt_that_is_too_long_is_refused_in_the_words_that_clients_look_for(real: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        ask(real, [{"role": "user", "content": "word " * 2_000}])


def test_tokens_are_counted_exactly_and_cached_ones_apart(real: anthropic.Anthropic) -> None:
    messages: Any = [{"role": "user", "content": "Tell me about otters."}]
    before = real.messages.count_tokens(model="builtin", messages=messages, system="Be brief.")
    usage = ask(real, messages, system="Be brief.").usage
    total = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    assert before.input_tokens == total
    first = ask(real, messages, system="Be brief.")
    again = first.usage
    assert (again.input_tokens, again.cache_read_input_tokens) == (1, total - 1)
    after: Any = real.messages.count_tokens(model="builtin", messages=messages, system="Be brief.")
    assert (after.input_tokens, after.cache_read_input_tokens) == (total, total - 1)
    turns = [*messages, {"role": "assistant", "content": first.content[0].text}, {"role": "user", "content": "More!"}]
    counted = real.messages.count_tokens(model="builtin", messages=turns, system="Be brief.").input_tokens
    later = ask(real, turns, system="Be brief.").usage
    assert counted == later.input_tokens + later.cache_read_input_tokens


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"system": "Be long."}, "system_changed"),
        ({"messages": [{"role": "user", "content": "Tell me of otters and of seals."}]}, "messages_changed"),
        ({"tools": [TOOL]}, "tools_changed"),
        ({"previous": "msg_unknown"}, "previous_message_not_found"),
    ],
)
def test_why_it_was_not_cached(real: anthropic.Anthropic, change: dict[str, Any], reason: str | None) -> None:
    fields: dict[str, Any] = {"system": "Be brief.", "metadata": {"user_id": f"user-{reason}"}}
    turns: Any = [{"role": "user", "content": f"Tell me about otters ({reason})."}]
    first = ask(real, turns, **fields)
    assert first.diagnostics is None
    more = [*turns, {"role": "assistant", "content": first.content[0].text}, {"role": "user", "content": "More!"}]
    previous = change.get("previous", first.id)
    changed = {**fields, **{name: value for name, value in change.items() if name in ("system", "tools")}}
    second = ask(real, change.get("messages", more), **changed, diagnostics={"previous_message_id": previous})
    if reason is None:
        assert second.diagnostics is None
    else:
        assert second.diagnostics.cache_miss_reason.type == reason
        missed = getattr(second.diagnostics.cache_miss_reason, "cache_missed_input_tokens", 1)
        assert missed > 0


def test_blocks_become_turns(fake: FakeClient, http: httpx.Client) -> None:
    """Results come first, in their order, then the text; thoughts and calls stay with their answer."""
    request = seen(
        fake,
        http,
        system=[
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=fa690;"},
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "b"},
        ],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "q"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "any"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                    {"type": "mcp_tool_use", "id": "s2", "name": "x", "server_name": "y", "input": {}},
                    {"type": "mcp_tool_result", "tool_use_id": "s2", "content": []},
                    {"type": "text", "text": "I look"},
                    CALL,
                    {**CALL, "id": "t2"},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and?"},
                    {**RESULT, "content": "one"},
                    {**RESULT, "tool_use_id": "t2", "content": [{"type": "text", "text": "two"}], "is_error": True},
                ],
            },
            {"role": "system", "content": "later"},
        ],
    )
    function = {"name": "look", "arguments": '{"b": 1, "a": {}}'}
    calls = [{"id": number, "type": "function", "function": function} for number in ("t1", "t2")]
    assert list(request.messages) == [
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "I look", "reasoning_content": "hm", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "t1", "name": "look", "content": "one"},
        {"role": "tool", "tool_call_id": "t2", "name": "look", "content": "The tool failed: two"},
        {"role": "user", "content": "and?"},
        {"role": "system", "content": "later"},
    ]


def test_what_a_search_found_is_read(fake: FakeClient, http: httpx.Client) -> None:
    """Claude Code defers tools, and names those that its search finds in a result (anthropics/claude-code#89211)."""
    source = {
        "type": "search_result",
        "title": "Boilers",
        "source": "https://a",
        "content": [{"type": "text", "text": "hot"}],
    }
    found = [{"type": "tool_reference", "tool_name": "mcp__look"}, source]
    request = seen(
        fake,
        http,
        messages=[
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "compaction", "content": "They asked q."}, CALL]},
            {"role": "user", "content": [{**RESULT, "content": found}, source]},
        ],
    )
    _, asked, result, more = request.messages
    assert asked["content"] == "They asked q."
    document = "[file: Boilers]\n```\nhttps://a\n\nhot\n```"
    assert result["content"] == f'{{"name": "mcp__look"}}\n{document}'
    assert more == {"role": "user", "content": document}


def test_a_tool_that_is_found_is_described_there(fake: FakeClient, http: httpx.Client) -> None:
    """What comes before the search stays as it was, and cached: in the list it would be another prompt."""
    result = {**RESULT, "content": [{"type": "tool_reference", "tool_name": "look"}]}
    messages = [*HI, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result]}]
    request = seen(fake, http, messages=[*messages, *messages[1:]], tools=[{**TOOL, "defer_loading": True}])
    described = {"name": "look", "description": "d", "parameters": TOOL["input_schema"]}
    first, again = [message for message in request.messages if message["role"] == "tool"]
    assert (json.loads(first["content"]), json.loads(again["content"])) == (described, {"name": "look"})
    assert ([tool["function"] for tool in request.tools], request.described_tools) == ([described], ("look",))
    for deferred, named in ((True, "other"), (False, "look")):  # not found, or in the list from the beginning
        result["content"][0]["tool_name"] = named
        request = seen(fake, http, messages=messages, tools=[{**TOOL, "defer_loading": deferred}])
        assert not request.described_tools


def test_what_was_read_before_a_tool_was_found_is_not_read_again(real: anthropic.Anthropic) -> None:
    turns: Any = [{"role": "user", "content": "Find me a tool."}]
    tools = [{**TOOL, "name": "search"}]
    first = ask(real, turns, tools=tools).usage
    result = {**RESULT, "content": [{"type": "tool_reference", "tool_name": "look"}]}
    turns += [{"role": "assistant", "content": [{**CALL, "name": "search"}]}, {"role": "user", "content": [result]}]
    later = ask(real, turns, tools=[{**TOOL, "defer_loading": True}, *tools]).usage
    assert later.cache_read_input_tokens >= first.input_tokens + first.cache_read_input_tokens - 8
    listed = ask(real, turns, tools=[TOOL, *tools]).usage
    assert listed.cache_read_input_tokens < later.cache_read_input_tokens


def test_the_billing_header_of_a_system_text_is_dropped(fake: FakeClient, http: httpx.Client) -> None:
    """It is another one in each request, so that nothing would be cached (ik_llama.cpp#1436)."""
    request = seen(fake, http, system="x-anthropic-billing-header: cch=1;\nBe brief.")
    assert request.messages[0] == {"role": "system", "content": "Be brief."}
    assert [m["role"] for m in seen(fake, http, system="x-anthropic-billing-header: cch=1;").messages] == ["user"]


def test_tools_are_passed_on_untouched(fake: FakeClient, http: httpx.Client) -> None:
    server_tool = {"type": "web_search_20250305", "name": "web_search"}
    answer = http.post("/v1/messages", json={"messages": HI, "tools": [server_tool], "thinking": {"type": "adaptive"}})
    assert answer.json()["localrun"]["ignored"] == ["tools[0].type"]
    for choice in ({"type": "auto"}, {"type": "none"}, {"type": "auto", "disable_parallel_tool_use": True}):
        (tool,) = seen(fake, http, tools=[TOOL, server_tool], tool_choice=choice).tools
        assert tool["function"] == {"name": "look", "description": "d", "parameters": TOOL["input_schema"]}
        assert list(tool["function"]["parameters"]["properties"]) == ["z", "a"]


@pytest.mark.parametrize(
    ("thinking", "think"),
    [
        (None, "auto"),
        ({"type": "enabled", "budget_tokens": 1024}, "on"),
        ({"type": "disabled"}, "off"),
        ({"type": "adaptive", "display": "summarized"}, "auto"),
        ({"type": "between_tools"}, "auto"),
    ],
)
def test_every_form_of_thinking_is_taken(fake: FakeClient, http: httpx.Client, thinking: Any, think: str) -> None:
    """Some servers refuse the newer ones (SRouter#92)."""
    assert seen(fake, http, thinking=thinking, output_config={"effort": "max"}).think == think


def test_an_answer_that_the_client_begins_is_gone_on_with(fake: FakeClient, http: httpx.Client) -> None:
    begun = [*HI, {"role": "assistant", "content": "The best answer is ("}]
    assert seen(fake, http, messages=begun).continues
    assert not seen(fake, http, messages=[*HI, {"role": "assistant", "content": [CALL]}]).continues


def test_fields_reach_the_engine(fake: FakeClient, http: httpx.Client) -> None:
    request = seen(fake, http, temperature=0.5, top_p=0.9, top_k=7, stop_sequences=["a", ""], betas=["x"], unknown=1)
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.top_k) == (0.5, 0.9, 7)
    assert (request.stop, request.max_tokens) == (("a",), 9)


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messages", []),
        ("messages", [{"role": "wizard", "content": ""}]),
        ("messages[0].content[0].source.data", [{"role": "user", "content": [IMAGE]}]),
        ("messages[0].content[0].type", [{"role": "user", "content": [{"type": "container_upload"}]}]),
        ("messages[0].content[0].content[0].source", [{"role": "user", "content": [{**RESULT, "content": [IMAGE]}]}]),
        ("messages[0].content[0].input", [{"role": "assistant", "content": [{**CALL, "input": "x"}]}]),
        ("max_tokens", 0),
        ("temperature", "hot"),
        ("stop_sequences", [1]),
        ("system", 1),
        ("system[0].type", [IMAGE]),
        ("thinking.type", {"type": "loud"}),
        ("tool_choice", {"type": "any"}),
        ("tool_choice", {"type": "tool", "name": "look"}),
        ("mcp_servers", [{"url": "x"}]),
        ("stream", "yes"),
        ("keep_alive", "soon"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_wrong_fields_are_named(http: httpx.Client, path: str, field: str, value: object) -> None:
    answer = http.post(path, json={"messages": HI, field.partition(".")[0].partition("[")[0]: value})
    assert answer.status_code == 400
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["message"].startswith(field)


def test_errors_have_their_own_classes(client: anthropic.Anthropic, served: Served) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        ask(client, model="no-such-model")
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_models_in_the_shape_of_anthropic(client: anthropic.Anthropic) -> None:
    models = list(client.models.list())
    assert [model.id for model in models]
    for model in models:
        assert client.models.retrieve(model.id).display_name == model.id
        assert model.created_at.year >= 1970
