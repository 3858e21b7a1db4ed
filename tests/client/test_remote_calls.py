"""Calls of tools as servers send them: in parts, whole, without numbers or ids, cut."""

import json
from typing import Any

import pytest
from localrun_testing.fake_client import FakeClient

from localrun.base.events import Event, Token, ToolCallDelta
from localrun.base.request import Request
from localrun.client.remote.answer import RemoteAnswer


def part(index: int | None, arguments: Any, name: str | None = None, id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"function": function, "id": id} | ({} if index is None else {"index": index})


A, B = ("call_a", "f", '{"x": 1}', True), ("call_b", "g", "{}", True)
# The deltas of a stream, what they finish with, and the calls: id, name, arguments, whether they are complete.
STREAMS: dict[str, tuple[list[list[dict[str, Any]]], str, list[tuple[str, str, str, bool]]]] = {
    "in parts": (
        [[part(0, "", "f", "call_a")], [part(0, '{"x"')], [part(0, ": 1}")], [part(1, "{}", "g", "call_b")]],
        "tool_calls",
        [A, B],
    ),
    "whole, all numbered 0": ([[part(0, '{"x": 1}', "f", "call_a"), part(0, "{}", "g", "call_b")]], "stop", [A, B]),
    "without numbers": ([[part(None, '{"x": 1}', "f", "call_a")], [part(None, "{}", "g", "call_b")]], "stop", [A, B]),
    "with name and id in every part": (
        [[part(0, '{"x"', "f", "call_a")], [part(0, ": 1}", "f", "call_a")]],
        "tool_calls",
        [A],
    ),
    "arguments as an object": ([[part(0, {"x": 1}, "f", "call_a")]], "tool_calls", [A]),
    "no arguments": ([[part(0, None, "g", "call_b")]], "tool_calls", [B]),
    "cut": ([[part(0, '{"x": ', "f", "call_a")]], "length", [("call_a", "f", '{"x": ', False)]),
    "cut before its arguments": ([[part(0, "", "f", "call_a")]], "length", [("call_a", "f", "", False)]),
    "broken off": ([[part(0, "", "f", "call_a")]], "", [("call_a", "f", "", False)]),
    "nonsense": ([[{"function": "f"}, 5, part(0, '{"x": 1}', "f", "call_a")]], "tool_calls", [A]),  # type: ignore[list-item]
}


def told(stream: list[list[dict[str, Any]]], finish: str) -> tuple[RemoteAnswer, list[Event]]:
    answer = RemoteAnswer(FakeClient(None, lambda request: "").info, Request(tools=({},)))  # type: ignore[arg-type]
    events: list[Event] = list(answer.push({"choices": [{"delta": {"content": "I look. <"}}]}))
    for parts in stream:
        events += answer.push({"choices": [{"delta": {"tool_calls": parts}}]})
    events += answer.push({"choices": [{"delta": {}, "finish_reason": finish or None}]})
    events += [*answer.flush(), *answer.flush()]
    return answer, events


@pytest.mark.parametrize(("stream", "finish", "calls"), STREAMS.values(), ids=list(STREAMS))
def test_calls_are_told_however_they_come(
    stream: list[list[dict[str, Any]]], finish: str, calls: list[tuple[str, str, str, bool]]
) -> None:
    answer, events = told(stream, finish)
    completion = answer.completion(None)
    assert [(call.id, call.name, call.arguments, call.is_complete) for call in completion.tool_calls] == calls
    assert completion.text == "I look. <"
    parts: dict[int, list[ToolCallDelta]] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            assert event.begins == (event.index not in parts)
            parts.setdefault(event.index, []).append(event)
    heard = [
        (one[0].id, one[0].name, "".join(delta.arguments for delta in one), one[-1].is_complete)
        for _, one in sorted(parts.items())
    ]
    assert heard == calls
    last_text = max(n for n, event in enumerate(events) if isinstance(event, Token))
    assert last_text < min(n for n, event in enumerate(events) if isinstance(event, ToolCallDelta))


def test_a_call_without_an_id_gets_one() -> None:
    answer, _ = told([[part(0, "{}", "f")]], "tool_calls")
    (call,) = answer.completion(None).tool_calls
    assert call.id.startswith("call_")
    assert json.loads(call.arguments) == {}


def test_a_server_that_only_says_that_it_calls_is_noted() -> None:
    answer, _ = told([], "tool_calls")
    assert any("not which" in note for note in answer.completion(None).notes)
