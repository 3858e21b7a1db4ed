"""Parse the bodies of POST /v1/responses (OpenAI's Responses), as codex and the SDKs send them."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.base.request import Json, Request
from localrun.server.inference import InferenceRequest
from localrun.server.openai.fields import effort, max_tokens, openai_request, sampling
from localrun.server.request.constraint_fields import text_format
from localrun.server.request.json_body import Body
from localrun.server.request.tool_choice_fields import with_tool_choice
from localrun.server.responses.items import Conversation
from localrun.server.responses.stored import StoredResponse
from localrun.server.responses.tools import ClientTools

IGNORED = (
    *("client_metadata", "context_management", "max_tool_calls", "moderation", "prompt_cache_options"),
    *("prompt_cache_retention", "safety_identifier", "stream_options", "top_logprobs", "user"),
)
REFUSED = ("conversation", "prompt")
SEALED_THOUGHTS = "reasoning.encrypted_content"


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A parsed body. `items`: its input in stored form; `echo`: fields repeated in the response."""

    inference: InferenceRequest
    items: list[Json]
    echo: Json
    first: str  # id of the first response of the chain; empty without a previous one
    is_stored: bool
    drops_turns: bool  # drop the oldest turns where the context is too small
    seals_thoughts: bool
    tools: ClientTools


def read_responses(body: Body, earlier: Sequence[StoredResponse] = ()) -> ResponsesRequest:
    """The request of a body, after the responses that it continues. Raises Refusal, naming the field."""
    for name in REFUSED:
        if name in body:
            raise body.wrong(name, "localrun has none of this")
    if body.flag("background"):
        raise body.wrong("background", "only false is supported: an answer is computed while its client is connected")
    tools = ClientTools()
    tools.add(body.objects("tools"))
    items = _items(body)
    conversation = Conversation(tools)
    for stored in earlier:
        before = [*stored.items, *stored.response["output"]]
        conversation.add([Body(item, "previous_response_id") for item in before])
    conversation.add([Body(item, f"input[{number}]") for number, item in enumerate(items)])
    messages = conversation.messages
    if instructions := body.text("instructions"):
        messages = [{"role": "system", "content": instructions}, *messages]
    request = Request(
        messages=tuple(messages),
        sampling=sampling(body),
        max_tokens=max_tokens(body, "max_output_tokens"),
        think=effort(body.inner("reasoning"), "effort"),
        tools=tuple(tools.functions),
        described_tools=tuple(tools.found),
        constraint=text_format(body),
    )
    request = with_tool_choice(request, body, tools.shown_as)
    asked = openai_request(body, (request,) if conversation.messages else (), IGNORED)
    is_stored = body.flag("store", True)
    return ResponsesRequest(
        replace(asked, ignored=(*asked.ignored, *tools.left_out, *conversation.left_out), is_held=asked.is_stream),
        [{**item, "id": item.get("id") or f"item_{secrets.token_hex(16)}"} for item in items],
        _echo(body, is_stored),
        earlier[0].response["id"] if earlier else "",
        is_stored,
        body.choice("truncation", ("auto", "disabled"), "disabled") == "auto",
        SEALED_THOUGHTS in body.texts("include", 32) and not is_stored,
        tools,
    )


def _items(body: Body) -> list[Json]:
    """The input as items; a text is a message of the user."""
    given = body.values.get("input")
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        return [{"type": "message", "role": "user", "content": content}] if given else []
    if not isinstance(given, list | None):
        raise body.wrong("input", "a string or a list of items is needed")
    return [item.values for item in body.objects("input")]


def _echo(body: Body, is_stored: bool) -> Json:
    """Fields of a request that its response repeats."""
    reasoning, values = body.inner("reasoning").values, body.values
    return {
        "previous_response_id": body.text("previous_response_id") or None,
        "instructions": values.get("instructions"),
        "tools": values.get("tools") or [],
        "tool_choice": values.get("tool_choice") or "auto",
        "parallel_tool_calls": body.flag("parallel_tool_calls", True),
        "truncation": body.text("truncation", "disabled"),
        "text": {"format": body.inner("text").values.get("format") or {"type": "text"}},
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "temperature": values.get("temperature"),
        "top_p": values.get("top_p"),
        "presence_penalty": values.get("presence_penalty"),
        "frequency_penalty": values.get("frequency_penalty"),
        "top_logprobs": 0,
        "max_output_tokens": values.get("max_output_tokens"),
        "max_tool_calls": None,
        "store": is_stored,
        "background": False,
        "service_tier": "default",
        "metadata": body.inner("metadata").values,
        "safety_identifier": None,
        "prompt_cache_key": values.get("prompt_cache_key"),
    }
