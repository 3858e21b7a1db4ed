"""Chat completions, as OpenAI's own client reads them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import frames
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until
from openai.types.chat import ChatCompletionMessageParam

from localrun.base.events import ModelInfo
from localrun.base.request import LoadOptions


def user(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_whole_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="builtin", messages=user("~~hello"))
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, answer.model) == ("hello", "stop", "builtin")
    assert choice.message.model_dump()["reasoning_content"] == "~~"
    assert answer.usage
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 7, 10)
    assert answer.usage.completion_tokens_details
    assert answer.usage.completion_tokens_details.reasoning_tokens == 2


def test_stream_helper_sees_the_same_answer(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="builtin", messages=user("~a b"), stream_options={"include_usage": True}
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    texts = [event.delta for event in events if event.type == "content.delta"]
    assert [text for text in texts if text] == list("a b")
    assert (final.choices[0].message.content, final.choices[0].finish_reason) == ("a b", "stop")
    assert final.usage
    assert final.usage.total_tokens == 7


def test_stream_without_usage_has_no_chunk_without_choices(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="", messages=user("hi"), stream=True))
    assert all(chunk.choices for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
    assert {chunk.model for chunk in chunks} == {"fake"}


def test_several_answers_have_seeds_of_their_own(client: openai.OpenAI, fake: FakeClient) -> None:
    before = len(fake.requests)
    answer = client.chat.completions.create(model="builtin", messages=user("x"), n=3, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert sorted(request.sampling.seed or 0 for request in fake.requests[before:]) == [5, 6, 7]


def test_seeds_of_several_answers_begin_again_after_the_largest(client: openai.OpenAI, fake: FakeClient) -> None:
    before = len(fake.requests)
    client.chat.completions.create(model="builtin", messages=user("x"), n=2, seed=(1 << 64) - 1)
    assert {request.sampling.seed for request in fake.requests[before:]} == {(1 << 64) - 1, 0}


@pytest.mark.parametrize("seed", [-(1 << 63), (1 << 63) - 1, (1 << 64) - 1])
def test_every_seed_of_openai_and_of_others_is_taken(http: httpx.Client, fake: FakeClient, seed: int) -> None:
    assert http.post("/v1/chat/completions", json={"messages": user("x"), "seed": seed}).status_code == 200
    assert fake.requests[-1].sampling.seed == seed % (1 << 64)


def test_fields_reach_the_engine(client: openai.OpenAI, fake: FakeClient) -> None:
    client.chat.completions.create(
        model="builtin",
        messages=[{"role": "developer", "content": "be brief"}, *user("x")],
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        logit_bias={"12": -3},
        stop=["a", "b"],
        max_completion_tokens=32_000,
        reasoning_effort="none",
        extra_body={"top_k": 7, "min_p": 0.1, "repetition_penalty": 1.2, "unknown_field": 1},
    )
    request = fake.requests[-1]
    sampling = request.sampling
    assert request.messages[0]["role"] == "developer"
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.5, 0.9, 7, 0.1)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repeat_penalty) == (0.1, 0.2, 1.2)
    assert (sampling.logit_bias, request.stop, request.max_tokens, request.think) == (
        {12: -3.0},
        ("a", "b"),
        32_000,
        "off",
    )


def test_content_in_parts_is_joined(client: openai.OpenAI, fake: FakeClient) -> None:
    parts: Any = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    client.chat.completions.create(model="", messages=[{"role": "user", "content": parts}])
    assert fake.requests[-1].messages[-1]["content"] == "a\nb"


@pytest.mark.parametrize(
    ("body", "think"),
    [
        ({"reasoning_effort": "low"}, "on"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "off"),
        ({"chat_template_kwargs": {"thinking": True}}, "on"),
        ({"enable_thinking": False, "reasoning_effort": "high"}, "off"),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "enabled"}}, "on"),
        ({"thinking": {"type": "adaptive"}}, "auto"),
        ({"reasoning": {"effort": "none"}}, "off"),
        ({"reasoning": {"effort": "none"}, "reasoning_effort": "low"}, "on"),
    ],
)
def test_every_switch_of_thinking_is_heeded(
    http: httpx.Client, fake: FakeClient, body: dict[str, Any], think: str
) -> None:
    assert http.post("/v1/chat/completions", json={"messages": user("x"), **body}).status_code == 200
    assert fake.requests[-1].think == think


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 9),
        ("temperature", "hot"),
        ("n", 9),
        ("n", True),
        ("max_tokens", -5),
        ("messages", []),
        ("messages", [{"role": "wizard", "content": ""}]),
        ("messages", [{"role": "user", "content": 5}]),
        ("messages", [{"role": "assistant", "tool_calls": 5}, *user("x")]),
        ("messages", [{"role": "assistant", "tool_calls": ["f"]}, *user("x")]),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
        ("stop", [1]),
        ("logit_bias", {"x": 1}),
        ("logit_bias", {"1": float("1e9")}),
        ("tool_choice", "required"),
        ("response_format", {"type": "grammar"}),
        ("response_format", {"type": "json_schema"}),
        ("response_format", {"type": "json_schema", "json_schema": {"schema": [1]}}),
        ("audio", {"voice": "x"}),
        ("functions", [{"name": "f"}]),
        ("function_call", "auto"),
        ("stream", "yes"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, field: str, value: object) -> None:
    body = {"messages": user("x"), field: value}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(field)


def test_unknown_model_is_404(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no-such-model", messages=user("x"))
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("stream", [False, True])
def test_client_that_leaves_cancels_its_answer(http: httpx.Client, served: Served, stream: bool) -> None:
    """A whole answer, too (halogen#58): an ASGI server does not cancel its handler."""
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/chat/completions", json={"messages": user("a…"), "stream": stream}, timeout=0.3)
    until(lambda: not served.service.registry.requests)


def test_models_are_listed_and_shown(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert any(name.partition(":")[0] == "builtin" for name in names)
    for name in names:
        assert client.models.retrieve(name).id == name


class Reborn(FakeClient):
    """An engine that is dead before each request, and loaded again for it from a file that has changed."""

    @property
    def info(self) -> ModelInfo:
        n_lives = len(self.requests)
        return replace(super().info, fingerprint=f"life {n_lives}", ctx=100 + n_lives)


def test_an_engine_that_was_loaded_again_is_told_of_as_it_is_now() -> None:
    body = {"messages": user("hi")}
    with serving(lambda choice: Reborn(LoadOptions(Path()), lambda request: "ho")) as running:
        whole = httpx.post(f"{running.url}/v1/chat/completions", json=body).json()
        stream = httpx.post(f"{running.url}/v1/chat/completions", json={**body, "stream": True}).text
        loaded = httpx.get(f"{running.url}/v1/localrun/requests").json()["model"]
    assert whole["system_fingerprint"] == "life 1"
    assert {chunk["system_fingerprint"] for chunk in frames(stream)} == {"life 2"}
    assert loaded["ctx"] == 102


def test_an_answer_that_the_client_begins_is_gone_on_with(fake: FakeClient, client: openai.OpenAI) -> None:
    begun: list[ChatCompletionMessageParam] = [*user("count"), {"role": "assistant", "content": "1, 2,"}]
    asked = {"continue_final_message": True, "add_generation_prompt": False}
    client.chat.completions.create(model="", messages=begun, extra_body=asked)
    assert fake.requests[-1].continues
    client.chat.completions.create(model="", messages=begun)
    assert not fake.requests[-1].continues
    begun[-1] = {"role": "assistant", "content": "1, 2,", "tool_calls": None}
    client.chat.completions.create(model="", messages=begun, extra_body=asked)
    assert fake.requests[-1].continues, "null is as good as nothing"
    with pytest.raises(openai.BadRequestError, match="continue_final_message"):
        client.chat.completions.create(model="", messages=user("count"), extra_body=asked)
