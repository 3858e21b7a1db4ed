"""Calls that a model has to make, or may: with a real engine, beside others, cut, and stopped."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import localrun
from localrun.base.errors import ToolSchemaError, UsageError
from localrun.base.events import Completion
from localrun.client.llm import request_for
from localrun.client.local import LocalClient
from localrun.engine.answer import AnswerStream

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"enum": [1, 2, 3]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "look", "description": "Look", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "additionalProperties": False}}},
]
ASK = "What is the weather in Paris?"
MUST: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 120}


@pytest.fixture(scope="module")
def llm() -> Iterator[localrun.LLM]:
    with localrun.LLM("builtin", ctx=1024) as made:
        yield made


def facts(completion: Completion) -> tuple[Any, ...]:
    return completion.token_ids, completion.text, completion.tool_calls, completion.stop_reason


@pytest.mark.parametrize(
    ("choice", "names", "most"),
    [
        ("required", {"look", "now"}, 99),
        ("look", {"look"}, 1),
        ({"type": "function", "function": {"name": "now"}}, {"now"}, 1),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]}, {"look"}, 99),
    ],
)
def test_a_model_calls_what_it_has_to(llm: localrun.LLM, choice: Any, names: set[str], most: int) -> None:
    said = llm.generate(ASK, seed=1, **{**MUST, "tool_choice": choice})
    assert 1 <= len(said.tool_calls) <= most
    for call in said.tool_calls[: None if said.ends_in_calls else -1]:
        assert call.name in names
        assert call.name == "now" or jsonschema.validate(json.loads(call.arguments), PARAMETERS) is None


def test_the_same_call_cached_and_beside_others(llm: localrun.LLM) -> None:
    first = [facts(llm.generate(ASK, seed=seed, parallel_tool_calls=False, **MUST)) for seed in range(3)]
    with localrun.LLM("builtin", ctx=1024, prefix_cache=False) as other, ThreadPoolExecutor(4) as pool:
        free = pool.submit(other.generate, "Tell a story.", max_tokens=60, seed=9)
        asked = [pool.submit(other.generate, ASK, seed=seed, parallel_tool_calls=False, **MUST) for seed in range(3)]
        assert [facts(one.result()) for one in asked] == first
        free.result()
    assert [facts(llm.generate(ASK, seed=seed, parallel_tool_calls=False, **MUST)) for seed in range(3)] == first


def test_a_call_that_is_cut_is_the_beginning_of_the_whole_one(llm: localrun.LLM) -> None:
    whole = llm.generate(ASK, seed=2, **{**MUST, "tool_choice": "look"})
    for n in range(1, len(whole.token_ids), 5):
        cut = llm.generate(ASK, seed=2, **{**MUST, "tool_choice": "look", "max_tokens": n})
        assert cut.token_ids == whole.token_ids[:n]
        assert (cut.stop_reason, cut.text) == ("length", "")
        for call in cut.tool_calls:
            assert whole.tool_calls[0].arguments.startswith(call.arguments)
            assert not call.is_complete or call.arguments == whole.tool_calls[0].arguments


def test_a_stop_string_within_arguments_stops_nothing(llm: localrun.LLM) -> None:
    whole = llm.generate(ASK, seed=2, **{**MUST, "tool_choice": "look"})
    again = llm.generate(ASK, seed=2, stop=["city", '"'], **{**MUST, "tool_choice": "look"})
    assert facts(again) == facts(whole)


def test_one_call_where_calls_are_free(llm: localrun.LLM) -> None:
    """Where letters begin a call the answer ends with the first that is complete."""
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    llm.generate(ASK, max_tokens=1)
    assert isinstance(llm._client, LocalClient)
    text, request = llm._client.model.text, replace(request_for([], {}), messages=({"role": "user", "content": ASK},))
    request = replace(request, tools=tuple(TOOLS))
    for is_single, n_calls in ((True, 1), (False, 2)):
        stream = AnswerStream(text.parser(request, [1]), (), is_single)
        for token in text.tokenizer.encode(f"{call}\n{call}"):
            if not stream.hit:
                list(stream.push(token))
        list(stream.flush())
        assert (len(stream.tool_calls), stream.hit, stream.text("answer")) == (n_calls, is_single, "")


def test_what_is_not_held_to_is_noted(llm: localrun.LLM) -> None:
    strict = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}]
    (*_, note) = llm.generate(ASK, tools=strict, max_tokens=1).notes
    assert "strict" in note
    (*_, note) = llm.generate(ASK, tools=TOOLS, schema={"enum": ["a"]}, max_tokens=9).notes
    assert "no tool is called" in note
    assert not any("held" in note for note in llm.generate(ASK, tools=TOOLS, max_tokens=1).notes)


@pytest.mark.parametrize(
    "options",
    [
        {"tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": "gone"},
        {"tools": TOOLS, "tool_choice": {"type": "function", "name": "gone"}},
        {"tools": TOOLS, "tool_choice": 5},
        {"tools": TOOLS, "parallel_tool_calls": "no"},
    ],
)
def test_wrong_choices_are_errors(llm: localrun.LLM, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="tool"):
        llm.generate(ASK, **options)


def test_a_strict_tool_that_cannot_be_held_to_is_an_error(llm: localrun.LLM) -> None:
    function = {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"a": {"not": {}}}}}
    with pytest.raises(ToolSchemaError, match="not"):
        llm.generate(ASK, tools=[{"type": "function", "function": function}], tool_choice="required")
