"""POST /v1/responses: OpenAI's Responses, as codex and its SDKs speak it."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from localrun.base.events import (
    Accepted,
    Channel,
    Completion,
    Done,
    Event,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
)
from localrun.base.request import Request
from localrun.server.inference import InferenceRequest, Json
from localrun.server.json_body import Body
from localrun.server.openai_fields import check_tool_choice, effort, max_tokens, priority, sampling
from localrun.server.openai_items import Conversation, flat_tools, sealed
from localrun.server.openai_usage import usage
from localrun.server.refusal import Refusal
from localrun.server.sse import data_frame
from localrun.server.stored_responses import StoredResponse

Status = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
IGNORED = (
    *("client_metadata", "max_tool_calls", "prompt_cache_retention", "safety_identifier"),
    *("stream_options", "top_logprobs", "user"),
)
REFUSED = ("conversation", "prompt")
SEALED_THOUGHTS = "reasoning.encrypted_content"


@dataclass(frozen=True, slots=True)
class Asked:
    """A body of this protocol. `items` are its input as it is stored; `echo` goes into the response as it came."""

    inference: InferenceRequest
    items: list[Json]
    echo: Json
    is_stored: bool
    drops_turns: bool  # the oldest turns, where the context is too small for all
    seals_thoughts: bool


def read_responses(body: Body, earlier: Sequence[StoredResponse] = ()) -> Asked:
    """A body as the request that it is, after the responses that it goes on from. Raises Refusal, naming the field."""
    for name in REFUSED:
        if name in body:
            raise body.wrong(name, "localrun has none of this")
    if body.flag("background"):
        raise body.wrong("background", "false is needed: answers are computed while somebody waits for them")
    check_tool_choice(body)
    if body.inner("text").inner("format").text("type", "text") != "text":
        raise body.wrong("text.format", "text is needed: localrun does not hold a model to a schema yet")
    tools, other_tools = flat_tools(body.objects("tools"))
    items = _items(body)
    conversation = Conversation()
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
        tools=tuple(tools),
    )
    is_stored = body.flag("store", True)
    is_stream = body.flag("stream")
    return Asked(
        InferenceRequest(
            model=body.text("model"),
            requests=(request,) if conversation.messages else (),
            is_stream=is_stream,
            priority=priority(body),
            session=body.text("prompt_cache_key"),
            ignored=(*(name for name in IGNORED if name in body), *other_tools, *conversation.left_out),
            is_held=is_stream,
            with_figures=body.values.get("localrun") is not False,
        ),
        [{**item, "id": item.get("id") or f"item_{secrets.token_hex(16)}"} for item in items],
        _echo(body, is_stored),
        is_stored,
        body.choice("truncation", ("auto", "disabled"), "disabled") == "auto",
        SEALED_THOUGHTS in body.texts("include", 32) and not is_stored,
    )


def _items(body: Body) -> list[Json]:
    """The input as items; a text is a message of the user."""
    if not isinstance(body.values.get("input"), str):
        return [item.values for item in body.objects("input")]
    text = body.text("input")
    content = [{"type": "input_text", "text": text}]
    return [{"type": "message", "role": "user", "content": content}] if text else []


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
        "text": {"format": {"type": "text"}},
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


class ResponsesCodec:
    """Writes response objects and their events. `response` is how far the answer is."""

    media_type = "text/event-stream"

    def __init__(self, asked: Asked) -> None:
        self._seals = asked.seals_thoughts
        self._number = 0  # of the next event
        self._open: Channel | None = None  # what the last item is, while it grows
        self.figures: Json | None = None
        self.dropped_turns = 0
        self.response: Json = {
            "id": f"resp_{secrets.token_hex(16)}",
            "object": "response",
            "created_at": int(time.time()),
            "completed_at": None,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": asked.inference.model,
            "output": [],
            "usage": None,
            **asked.echo,
        }

    def begin(self, info: ModelInfo | None) -> bytes:
        self._know(info)
        return self._state("created") + self._state("in_progress")

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Token(_, text, channel):
                return self._grow(channel, text) if text else b""
            case Done(completion):
                frames = self._close("incomplete" if completion.stop_reason == "length" else "completed")
                self._finish(completion)
                return frames
            case Accepted() | Prefill() | PromptLogprobs() | Loop():
                return b""
        assert_never(event)

    def end(self) -> bytes:
        if self.response["status"] == "in_progress":  # nothing was asked for but the model
            self.response |= {"status": "completed", "completed_at": int(time.time()), "usage": _usage([])}
        name = "completed" if self.response["status"] == "completed" else "incomplete"
        return self._state(name)

    def ping(self) -> bytes:
        return self._state("in_progress")

    def failure(self, refusal: Refusal) -> bytes:
        self._close("incomplete")
        self.response |= {"status": "failed", "error": {"code": _code(refusal), "message": refusal.message}}
        return self._state("failed")

    def whole(self, info: ModelInfo, completions: list[Completion]) -> Json:
        self._know(info)
        self.end()
        return dict(self.response)

    def cancelled(self) -> None:
        """Leave the rest: no client waits for it."""
        self._close("incomplete")
        self.response |= {"status": "cancelled"}

    def _know(self, info: ModelInfo | None) -> None:
        if info is not None:
            self.response["model"] = self.response["model"] or info.name

    def _finish(self, completion: Completion) -> None:
        status: Status = "completed"
        if completion.stop_reason == "length":
            status = "incomplete"
            self.response["incomplete_details"] = {"reason": "max_output_tokens"}
        elif completion.stop_reason == "cancelled":
            status = "cancelled"
        told: Json = {**(self.figures or {})}
        if self.dropped_turns:
            told["dropped_turns"] = self.dropped_turns
        self.figures = told or None
        self.response |= {"status": status, "completed_at": int(time.time()), "usage": _usage([completion])}

    def _grow(self, channel: Channel, text: str) -> bytes:
        """More text of the item that is open, which is begun if need be."""
        frames = b""
        if channel != self._open:
            frames = self._close("completed") + self._begin(channel)
        self._item["content"][0]["text"] += text
        name = "output_text" if channel == "answer" else "reasoning_text"
        more: Json = {"logprobs": []} if channel == "answer" else {}
        return frames + self._of_part(f"{name}.delta", delta=text, **more)

    def _begin(self, channel: Channel) -> bytes:
        self._open = channel
        hex_id = secrets.token_hex(16)
        if channel == "thinking":
            item: Json = {"id": f"rs_{hex_id}", "type": "reasoning", "summary": [], "status": "in_progress"}
            part: Json = {"type": "reasoning_text", "text": ""}
        else:
            item = {"id": f"msg_{hex_id}", "type": "message", "role": "assistant", "status": "in_progress"}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self.response["output"].append({**item, "content": []})
        frames = self._of_item("added")
        self._item["content"].append(part)
        return frames + (self._of_part("content_part.added", part=part) if channel == "answer" else b"")

    def _close(self, status: Status) -> bytes:
        """The end of the item that is open, if one is."""
        if self._open is None:
            return b""
        part = self._item["content"][0]
        if self._open == "answer":
            frames = self._of_part("output_text.done", text=part["text"], logprobs=[])
            frames += self._of_part("content_part.done", part=part)
        else:
            frames = self._of_part("reasoning_text.done", text=part["text"])
            if self._seals:
                self._item["encrypted_content"] = sealed(part["text"])
        self._item["status"] = status
        self._open = None
        return frames + self._of_item("done")

    @property
    def _item(self) -> Json:
        item: Json = self.response["output"][-1]
        return item

    def _of_item(self, name: str) -> bytes:
        index = len(self.response["output"]) - 1
        return self._frame(f"output_item.{name}", output_index=index, item=self._item)

    def _of_part(self, name: str, **values: object) -> bytes:
        index = len(self.response["output"]) - 1
        return self._frame(name, item_id=self._item["id"], output_index=index, content_index=0, **values)

    def _state(self, name: str) -> bytes:
        """The whole response; while it grows its items come by themselves."""
        response = self.response if name not in ("created", "in_progress") else {**self.response, "output": []}
        told = {"localrun": self.figures} if self.figures and response is self.response else {}
        return self._frame(name, response={**response, **told})

    def _frame(self, name: str, **values: object) -> bytes:
        kind, number = f"response.{name}", self._number
        self._number += 1
        return data_frame({"type": kind, "sequence_number": number, **values}, kind)


def _usage(completions: Sequence[Completion]) -> Json:
    if not completions:
        read, written, cached, thought = 0, 0, 0, 0
    else:
        of_chat = usage(completions)
        read, written = of_chat["prompt_tokens"], of_chat["completion_tokens"]
        cached = of_chat["prompt_tokens_details"]["cached_tokens"]
        thought = of_chat["completion_tokens_details"]["reasoning_tokens"]
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": read + written,
    }


def _code(refusal: Refusal) -> str:
    """A code that clients know: what they do next hangs on it."""
    if refusal.code == "context_length_exceeded":
        return refusal.code
    if refusal.status == 429:
        return "rate_limit_exceeded"
    return "server_error" if refusal.status >= 500 else "invalid_prompt"
