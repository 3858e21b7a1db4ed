"""A client is told where its prompt began to be another one than the time before."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.served import serving

from localrun.base.request import LoadOptions
from localrun.client.local import LocalClient
from localrun.hub.catalogue import BUILTIN
from localrun.hub.resolve import resolve

LONG = "Tell me what a KV cache is for, and why the second token is faster than the first. " * 4


@pytest.fixture(scope="module")
def address() -> Any:
    stored = resolve(BUILTIN)
    options = LoadOptions(Path(stored.path), name=BUILTIN, ctx=1024, threads=1)
    with LocalClient(options) as client, serving(lambda choice: client) as running:
        yield f"{running.url}/v1/chat/completions"


def ask(address: str, *texts: str, session: str = "s", **more: Any) -> httpx.Response:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    body = {"messages": messages, "max_tokens": 4, "seed": 1, "prompt_cache_key": session, **more}
    answer = httpx.post(address, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


def figures(answer: httpx.Response) -> Any:
    return answer.json()["localrun"]


def test_a_conversation_that_goes_on_has_no_break(address: str) -> None:
    first = ask(address, "Be brief.", LONG, session="on")
    said = first.json()["choices"][0]["message"]["content"]
    second = figures(ask(address, "Be brief.", LONG, said, "And then?", session="on"))
    assert figures(first)["cache_break"] is None
    assert second["cached"] >= first.json()["usage"]["prompt_tokens"] - 1


@pytest.mark.parametrize(
    ("before", "after", "kind", "index"),
    [
        (("Today is Monday.", LONG), ("Today is Tuesday.", LONG), "system", 0),
        (
            ("Be brief.", f"at 12:00 {LONG}", "ok", "go on"),
            ("Be brief.", f"at 12:01 {LONG}", "ok", "go on"),
            "message",
            1,
        ),
    ],
)
def test_what_changed_is_named(
    address: str, before: tuple[str, ...], after: tuple[str, ...], kind: str, index: int
) -> None:
    """A date at the beginning or a reminder that moves costs the whole cache (opencode#23595, pi#6621)."""
    session = f"{kind}{index}"
    ask(address, *before, session=session)
    found = figures(ask(address, *after, session=session))["cache_break"]
    assert (found["kind"], found["message_index"]) == (kind, index)
    assert found["before"] != found["after"]
    assert found["after"] in after[index]
    assert 0 <= found["at_token"] < 40


def test_tools_that_change_are_named(address: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    ask(address, "x", LONG, session="tools")
    found = figures(ask(address, "x", "another question", session="tools", tools=[tool]))["cache_break"]
    assert found["kind"] == "tools"


def test_a_chain_of_responses_is_a_conversation(address: str) -> None:
    at = address.replace("chat/completions", "responses")
    body = {"input": LONG, "instructions": "Be brief.", "max_output_tokens": 4}
    first = httpx.post(at, json=body, timeout=60).json()
    goes_on = {**body, "previous_response_id": first["id"], "instructions": "Be clear."}
    broken = httpx.post(at, json=goes_on, timeout=60).json()["localrun"]["cache_break"]
    assert (broken["kind"], broken["before"], broken["after"]) == ("system", "Be brief.", "Be clear.")


def test_figures_go_with_the_end_of_a_stream_and_can_be_left_out(address: str) -> None:
    stream = ask(address, "x", LONG, stream=True).text
    assert stream.count('"localrun":{') == 1
    without = ask(address, "x", LONG, localrun=False).json()
    assert "localrun" not in without


def test_headers_tell_the_same(address: str) -> None:
    answer = ask(address, "x", LONG)
    usage = answer.json()["usage"]
    assert answer.headers["x-localrun-prompt"] == str(usage["prompt_tokens"])
    assert answer.headers["x-localrun-cached"] == str(usage["prompt_tokens_details"]["cached_tokens"])
    assert figures(answer)["seed"] == 1
