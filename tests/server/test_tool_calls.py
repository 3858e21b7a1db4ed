"""Calls of tools in every protocol, as the clients' own libraries read them."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served

from localrun.base.events import ToolCall
from localrun.server.tool_arguments import arguments_of

PARIS = ToolCall("call_1", "get_weather", '{"city": "Paris", "days": 2}')
NOTHING = ToolCall("call_2", "now", "{}")
CUT = ToolCall("call_3", "get_weather", '{"city": "Par', is_complete=False)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
OPENAI_TOOLS: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
ASK: Any = [{"role": "user", "content": "Weather?"}]


@pytest.fixture
def called(fake: FakeClient, monkeypatch: pytest.MonkeyPatch) -> list[ToolCall]:
    """The calls that the model makes; to be filled."""
    calls: list[ToolCall] = []
    monkeypatch.setattr(fake, "calls", lambda request: tuple(calls))
    monkeypatch.setattr(fake, "answer", lambda request: "~I look.")
    return calls


@pytest.fixture(scope="module")
def openai_client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


CASES: dict[str, tuple[list[ToolCall], str]] = {
    "two, one without arguments": ([PARIS, NOTHING], "tool_calls"),
    "one that was cut": ([PARIS, CUT], "stop"),  # the model said no more
    "none": ([], "stop"),
}


@pytest.mark.parametrize(("calls", "reason"), CASES.values(), ids=list(CASES))
def test_chat_completions(
    openai_client: openai.OpenAI, called: list[ToolCall], calls: list[ToolCall], reason: str
) -> None:
    called += calls
    asked: Any = {"model": "", "messages": ASK, "tools": OPENAI_TOOLS}
    whole = openai_client.chat.completions.create(**asked).choices[0]
    with openai_client.chat.completions.stream(**asked) as stream:
        events = list(stream)
        streamed = stream.get_final_completion().choices[0]
    for choice in (whole, streamed):
        found = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
        assert found == [(call.id, call.name, call.arguments) for call in calls]
        assert (choice.message.content, choice.finish_reason) == ("I look.", reason)
    deltas = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert "".join(deltas) == "".join(call.arguments for call in calls)
    assert len(deltas) >= 3 * bool(calls)
    assert not calls or json.loads(calls[0].arguments) == {"city": "Paris", "days": 2}


@pytest.mark.parametrize(("calls", "reason"), CASES.values(), ids=list(CASES))
def test_responses(openai_client: openai.OpenAI, called: list[ToolCall], calls: list[ToolCall], reason: str) -> None:
    called += calls
    tools: Any = [{"type": "function", "strict": False, **OPENAI_TOOLS[0]["function"]}]
    whole = openai_client.responses.create(model="", input="Weather?", tools=tools)
    with openai_client.responses.stream(model="", input="Weather?", tools=tools) as stream:
        events: list[Any] = list(stream)
        streamed = stream.get_final_response()
    for response in (whole, streamed):
        assert [item.type for item in response.output] == ["reasoning", "message", *["function_call"] * len(calls)]
        found = [(item.call_id, item.name, item.arguments) for item in response.output if item.type == "function_call"]
        assert found == [(call.id, call.name, call.arguments) for call in calls]
        ends = [item.status for item in response.output if item.type == "function_call"]
        assert ends == ["completed" if call.is_complete else "incomplete" for call in calls]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    done = [event.arguments for event in events if event.type == "response.function_call_arguments.done"]
    assert done == [call.arguments for call in calls]


CODEX_TOOLS: Any = [
    {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close", "parameters": {}}]},
    {"type": "custom", "name": "apply_patch", "description": "Patch files"},
    {"type": "web_search"},
]


def test_codex_finds_namespaces_and_free_input_as_it_gave_them(
    openai_client: openai.OpenAI, called: list[ToolCall], fake: FakeClient
) -> None:
    patch = "*** Begin Patch\n+é"
    called += [ToolCall("call_1", "close", "{}"), ToolCall("call_2", "apply_patch", json.dumps({"input": patch}))]
    response = openai_client.responses.create(model="", input="Go", tools=CODEX_TOOLS)
    close, custom = [item.model_dump() for item in response.output][-2:]
    assert (close["type"], close["name"], close["namespace"]) == ("function_call", "close", "agents")
    assert (custom["type"], custom["name"], custom["input"]) == ("custom_tool_call", "apply_patch", patch)
    shown = [tool["function"]["name"] for tool in fake.requests[-1].tools]
    assert shown == ["close", "apply_patch"]
    replay: Any = [
        {"role": "user", "content": "Go"},
        *[item.model_dump(exclude_none=True) for item in response.output],
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "closed"}]},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "patched"},
    ]
    openai_client.responses.create(model="", input=replay, tools=CODEX_TOOLS)
    _, asked, *results = fake.requests[-1].messages
    assert [call["function"]["name"] for call in asked["tool_calls"]] == ["close", "apply_patch"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [
        ("call_1", "closed"),
        ("call_2", "patched"),
    ]


def test_a_tool_keeps_its_name_in_the_history(
    openai_client: openai.OpenAI, called: list[ToolCall], fake: FakeClient
) -> None:
    """Two servers of tools may have one of the same name: the prompt goes on as the model wrote it."""
    find = {"type": "function", "name": "find", "parameters": {}}
    tools: Any = [{"type": "namespace", "name": f"mcp__{name}", "tools": [find]} for name in "ab"]
    called.append(ToolCall("call_1", "mcp__b__find", "{}"))
    response = openai_client.responses.create(model="", input="Go", tools=tools)
    call = response.output[-1].model_dump(exclude_none=True)
    assert (call["name"], call["namespace"]) == ("find", "mcp__b")
    replay: Any = [*ASK, call, {"type": "function_call_output", "call_id": "call_1", "output": "it"}]
    openai_client.responses.create(model="", input=replay, tools=tools)
    assert fake.requests[-1].messages[1]["tool_calls"][0]["function"]["name"] == "mcp__b__find"


EXEC = {
    "type": "custom",
    "name": "exec",
    "description": "Run a program",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
WAIT = {"type": "function", "name": "wait", "parameters": {}}
IN_AN_ITEM = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "namespace", "name": "functions", "tools": [EXEC, WAIT]}, SEARCH],
}
FOUND = [{"type": "namespace", "name": "mcp__chrome", "tools": [{**WAIT, "name": "open"}]}]


def test_codex_finds_the_tools_of_an_item_as_it_gave_them(
    openai_client: openai.OpenAI, called: list[ToolCall], fake: FakeClient
) -> None:
    """For a model whose name it knows codex sends no others since 0.144, most in a namespace that stands for none."""
    called += [ToolCall("call_1", "exec", json.dumps({"input": "ls"})), ToolCall("call_2", "wait", "{}")]
    ask: Any = [IN_AN_ITEM, *ASK]
    response = openai_client.responses.create(model="", input=ask)
    run, wait = [item.model_dump(exclude_none=True) for item in response.output][-2:]
    assert (run["type"], run["name"], run["input"]) == ("custom_tool_call", "exec", "ls")
    assert (wait["type"], wait["name"]) == ("function_call", "wait")
    assert not {"namespace"} & (run.keys() | wait.keys())
    functions = [tool["function"] for tool in fake.requests[-1].tools]
    assert [function["name"] for function in functions] == ["exec", "wait", "tool_search"]
    assert functions[0]["description"] == "Run a program\n\nThe input is of this lark grammar:\nstart: /.+/"
    assert functions[2]["parameters"] == SEARCH["parameters"]
    going_on: Any = "And?"
    openai_client.responses.create(model="", input=going_on, previous_response_id=response.id)
    assert [tool["function"]["name"] for tool in fake.requests[-1].tools] == ["exec", "wait", "tool_search"]


def test_codex_searches_for_tools_and_calls_those_found(
    openai_client: openai.OpenAI, called: list[ToolCall], fake: FakeClient
) -> None:
    called.append(ToolCall("call_1", "tool_search", '{"query": "browser"}'))
    ask: Any = [IN_AN_ITEM, *ASK]
    with openai_client.responses.stream(model="", input=ask) as stream:
        done = [event.item for event in stream if event.type == "response.output_item.done"]
    search = done[-1].model_dump(exclude_none=True)
    assert (search["type"], search["execution"], search["call_id"]) == ("tool_search_call", "client", "call_1")
    assert (search["arguments"], search["status"]) == ({"query": "browser"}, "completed")
    found = {"type": "tool_search_output", "execution": "client", "call_id": "call_1", "tools": FOUND}
    called[:] = [ToolCall("call_2", "open", "{}")]
    replay: Any = [*ask, search, found, found]  # which is found again
    response = openai_client.responses.create(model="", input=replay)
    opened: Any = response.output[-1]
    assert (opened.type, opened.name, opened.namespace) == ("function_call", "open", "mcp__chrome")
    request = fake.requests[-1]
    assert [tool["function"]["name"] for tool in request.tools] == ["exec", "wait", "tool_search", "open"]
    assert request.described_tools == ("open",), "the list that was read stays as it was"
    _, asked, *results = request.messages
    assert asked["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"query": "browser"}'}
    described = {"name": "open", "parameters": {}}
    assert [json.loads(result["content"]) for result in results] == [[described], [{"name": "open"}]]


@pytest.mark.parametrize(("calls", "reason"), CASES.values(), ids=list(CASES))
def test_messages(served: Served, called: list[ToolCall], calls: list[ToolCall], reason: str) -> None:
    called += calls
    tools: Any = [{"name": "get_weather", "input_schema": PARAMETERS}]
    asked: Any = {"model": "", "max_tokens": 100, "messages": ASK, "tools": tools}
    with anthropic.Anthropic(base_url=served.url, api_key="any", max_retries=0) as client:
        whole: Any = client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            list(stream)
            streamed: Any = stream.get_final_message()
    inputs = {PARIS: {"city": "Paris", "days": 2}, NOTHING: {}}
    for message, cut in ((whole, {"city": "Par"}), (streamed, {})):  # the library drops a text that is cut
        assert message.stop_reason == ("tool_use" if reason == "tool_calls" else "end_turn")
        assert [block.type for block in message.content] == ["thinking", "text", *["tool_use"] * len(calls)]
        found = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        assert found == [(call.id, call.name, inputs.get(call, cut)) for call in calls]


@pytest.mark.parametrize(("calls", "reason"), CASES.values(), ids=list(CASES))
def test_ollama(served: Served, called: list[ToolCall], calls: list[ToolCall], reason: str) -> None:
    called += calls
    client = ollama.Client(host=served.url)
    whole = client.chat(model="builtin", messages=ASK, tools=OPENAI_TOOLS)
    lines = list(client.chat(model="builtin", messages=ASK, tools=OPENAI_TOOLS, stream=True))
    told = [call for line in lines for call in line.message.tool_calls or ()]
    for found in (list(whole.message.tool_calls or ()), told):
        assert [(call.function.name, dict(call.function.arguments)) for call in found] == [
            (call.name, json.loads(call.arguments)) for call in calls if call.is_complete
        ]
    assert (whole.message.content, whole.done_reason) == ("I look.", "stop")
    assert "".join(line.message.content or "" for line in lines) == "I look."


def test_arguments_of_a_call_that_was_cut() -> None:
    begun = {
        "": {},
        "{": {},
        '{"a": ': {"a": None},
        '{"a": 1, ': {"a": 1},
        '{"a": [1, {"b": "c\\"': {"a": [1, {"b": 'c"'}]},
    }
    for text, arguments in begun.items():
        assert arguments_of(ToolCall("", "f", text, is_complete=False)) == arguments
