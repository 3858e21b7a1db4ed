"""Which tools a model may or must call, asked for in every protocol."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import frames, question
from localrun_testing.served import Served, serving

from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.base.tool_choice import names_of
from localrun.client.local import LocalClient

CHAT, RESPONSES, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"enum": [1, 2, 3]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
LOOSE = {"type": "object", "properties": {"n": {"type": "array", "items": {"enum": [1]}, "uniqueItems": True}}}


def tools(path: str, *names: str, parameters: Any = PARAMETERS, **more: Any) -> list[dict[str, Any]]:
    """Tools of these names in the words of a protocol."""
    if path == MESSAGES:
        return [{"name": name, "input_schema": parameters, **more} for name in names]
    functions = [{"name": name, "parameters": parameters, **more} for name in names]
    if path == RESPONSES:
        return [{"type": "function", **function} for function in functions]
    return [{"type": "function", "function": function} for function in functions]


FUNCTION = {"type": "function", "function": {"name": "look"}}
# Fields of a body -> choice, names it is limited to, and whether there may be several calls.
FIELDS: list[tuple[str, dict[str, Any], tuple[str, tuple[str, ...], bool]]] = [
    (CHAT, {}, ("auto", (), True)),
    (CHAT, {"tool_choice": "none"}, ("none", (), True)),
    (CHAT, {"tool_choice": "required"}, ("required", (), True)),
    (CHAT, {"tool_choice": "required", "parallel_tool_calls": False}, ("required", (), False)),
    (CHAT, {"tool_choice": FUNCTION}, ("required", ("look",), False)),
    (
        CHAT,
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [FUNCTION]}}},
        ("required", ("look",), True),
    ),
    (RESPONSES, {"tool_choice": {"type": "function", "name": "look"}}, ("required", ("look",), False)),
    (
        RESPONSES,
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "go"}]}},
        ("auto", ("go",), True),
    ),
    (MESSAGES, {"tool_choice": {"type": "any"}}, ("required", (), True)),
    (MESSAGES, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, ("required", (), False)),
    (MESSAGES, {"tool_choice": {"type": "tool", "name": "go"}}, ("required", ("go",), False)),
    (MESSAGES, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, ("auto", (), False)),
    (OLLAMA, {}, ("auto", (), True)),
]


@pytest.mark.parametrize(("path", "fields", "meant"), FIELDS)
def test_fields_say_what_may_be_called(
    fake: FakeClient, http: httpx.Client, path: str, fields: dict[str, Any], meant: tuple[Any, ...]
) -> None:
    answer = http.post(path, json={**question(path, "hi"), "tools": tools(path, "look", "go"), **fields})
    assert answer.status_code == 200, answer.text
    request = fake.requests[-1]
    assert (request.tool_choice, request.allowed_tools, request.parallel_tool_calls) == meant


def test_a_tool_in_a_namespace_is_chosen_by_its_own_name(fake: FakeClient, http: httpx.Client) -> None:
    given = [*tools(RESPONSES, "go"), {"type": "namespace", "name": "far", "tools": tools(RESPONSES, "go", "look")}]
    for name, shown in (("go", ("go", "far__go")), ("look", ("look",))):
        choice = {"type": "function", "name": name}
        http.post(RESPONSES, json={**question(RESPONSES, "hi"), "tools": given, "tool_choice": choice})
        assert fake.requests[-1].allowed_tools == shown


@pytest.mark.parametrize(
    ("path", "choice"),
    [
        (CHAT, "sometimes"),
        (CHAT, 5),
        (CHAT, {"type": "function", "function": {"name": "gone"}}),
        (CHAT, {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}),
        (RESPONSES, {"type": "web_search"}),
        (RESPONSES, {"type": "function", "name": "gone"}),
        (MESSAGES, {"type": "tool", "name": "gone"}),
        (MESSAGES, {"type": "tool"}),
    ],
)
def test_wrong_choices_are_named(http: httpx.Client, path: str, choice: Any) -> None:
    answer = http.post(path, json={**question(path, "hi"), "tools": tools(path, "look"), "tool_choice": choice})
    assert (answer.status_code, answer.json()["error"]["message"].startswith("tool_choice: ")) == (400, True)


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, OLLAMA])
@pytest.mark.parametrize("name", ["", "two words", "a/b", "<call>", "new\nline", "x" * 129])
def test_a_tool_whose_name_no_call_can_have_is_refused(http: httpx.Client, path: str, name: str) -> None:
    answer = http.post(path, json={**question(path, "hi"), "tools": tools(path, "look", name)})
    field = "tools[1].function.name" if path in (CHAT, OLLAMA) else "tools[1].name"
    assert (answer.status_code, f"{field}: 1 to 128 letters" in answer.text) == (400, True)


@pytest.mark.parametrize("name", ["mcp__files__read-file", "files.read", "获取天气", "x" * 128])
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, OLLAMA])
def test_names_of_tools_are_passed_on(fake: FakeClient, http: httpx.Client, path: str, name: str) -> None:
    assert http.post(path, json={**question(path, "hi"), "tools": tools(path, name)}).status_code == 200
    assert names_of(fake.requests[-1].tools) == (name,)


@pytest.mark.parametrize(
    ("path", "tool", "field"),
    [
        (CHAT, {}, "tools[0].name"),
        (CHAT, {"type": "custom", "custom": {"name": "look"}}, "tools[0].type"),
        (CHAT, {"type": "function", "function": 5}, "tools[0].function"),
        (CHAT, {"type": "function", "function": {"name": "look", "parameters": 5}}, "tools[0].function.parameters"),
        (RESPONSES, {"type": "function", "name": "look", "parameters": []}, "tools[0].parameters"),
        (RESPONSES, {"type": "namespace", "name": "", "tools": []}, "tools[0].name"),
    ],
)
def test_what_is_no_function_is_refused(http: httpx.Client, path: str, tool: Any, field: str) -> None:
    answer = http.post(path, json={**question(path, "hi"), "tools": [tool]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)


@pytest.fixture(scope="module")
def engine() -> Iterator[Served]:
    """A server with the model inside localrun."""
    path = Path(resource("localrun/builtin/localrun-tiny.gguf"))
    with LocalClient(LoadOptions(path, name="builtin", ctx=1024)) as client, serving(lambda choice: client) as served:
        yield served


def ask(served: Served, path: str, **fields: Any) -> httpx.Response:
    asked = {**question(path, "Where to?", max_tokens=120, seed=5), "tools": tools(path, "look", "go"), **fields}
    return httpx.post(f"{served.url}{path}", json=asked, timeout=120)


def calls_in(path: str, answer: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and arguments of the calls of a whole answer."""
    match path:
        case "/v1/chat/completions":
            found = [call["function"] for call in answer["choices"][0]["message"].get("tool_calls", ())]
            return [(one["name"], json.loads(one["arguments"])) for one in found]
        case "/v1/responses":
            items = [item for item in answer["output"] if item["type"] == "function_call"]
            return [(item["name"], json.loads(item["arguments"])) for item in items]
    return [(block["name"], block["input"]) for block in answer["content"] if block["type"] == "tool_use"]


REQUIRED = {CHAT: "required", RESPONSES: "required", MESSAGES: {"type": "any"}}
NAMED = {
    CHAT: {"type": "function", "function": {"name": "go"}},
    RESPONSES: {"type": "function", "name": "go"},
    MESSAGES: {"type": "tool", "name": "go"},
}
REASONS = {CHAT: '"finish_reason": "tool_calls"', RESPONSES: '"status": "completed"', MESSAGES: '"tool_use"'}


@pytest.mark.parametrize("path", REQUIRED)
def test_a_model_that_has_to_call_does(engine: Served, path: str) -> None:
    several = ask(engine, path, tool_choice=REQUIRED[path])
    one = ask(engine, path, tool_choice=NAMED[path])
    for answer in (several, one):
        calls = calls_in(path, answer.json())
        assert calls
        for _, arguments in calls:
            jsonschema.validate(arguments, PARAMETERS)
    assert [name for name, _ in calls_in(path, one.json())] == ["go"]
    assert REASONS[path] in json.dumps(one.json())
    stream = ask(engine, path, tool_choice=NAMED[path], stream=True)
    (_, arguments), *_ = calls_in(path, one.json())
    assert arguments == json.loads("".join(arguments_in(frames(stream.text))))


def arguments_in(objects: list[dict[str, Any]]) -> Iterator[str]:
    """The arguments of calls in a stream, in pieces."""
    for one in objects:
        if one.get("type") == "response.function_call_arguments.delta":
            yield one["delta"]
        elif one.get("type") == "content_block_delta":
            yield one["delta"].get("partial_json", "")
        else:
            for choice in one.get("choices", ()):
                yield from (call["function"]["arguments"] for call in choice["delta"].get("tool_calls", ()))


@pytest.mark.parametrize("path", REQUIRED)
def test_a_keyword_that_calls_cannot_be_held_to_is_named_or_noted(engine: Served, path: str) -> None:
    strict = tools(path, "look", parameters=LOOSE, strict=True)
    refused = ask(engine, path, tools=strict, tool_choice=REQUIRED[path])
    assert (refused.status_code, "uniqueItems" in refused.text, "look" in refused.text) == (400, True, True)
    if path != MESSAGES:
        assert refused.json()["error"]["param"] == "tools"
    noted = ask(engine, path, tools=tools(path, "look", parameters=LOOSE), tool_choice=REQUIRED[path])
    assert noted.status_code == 200
    assert any("uniqueItems" in note for note in noted.json()["localrun"]["notes"])
