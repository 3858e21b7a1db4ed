"""Calls of tools in every protocol, as the clients' own libraries read them."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served

from localrun.base.events import ToolCall

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
