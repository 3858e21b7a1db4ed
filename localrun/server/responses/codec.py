"""Answers to POST /v1/responses: response objects and their stream events."""

import secrets
import time
from collections.abc import Sequence
from typing import Literal, assert_never

from localrun.base.events import (
    Accepted,
    Channel,
    Completion,
    Done,
    Event,
    ImageProgress,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
    ToolCall,
    ToolCallDelta,
)
from localrun.base.request import Json
from localrun.server.inference import Codec
from localrun.server.openai.usage import usage
from localrun.server.refusal import Refusal
from localrun.server.request.truncation import Dropped
from localrun.server.responses.items import sealed
from localrun.server.responses.request import ResponsesRequest
from localrun.server.responses.tools import SEARCH, free_input
from localrun.server.sse import data_frame
from localrun.server.tool_arguments import arguments_of

Status = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]


class ResponsesCodec(Codec):
    """Writes response objects and their events. `response`: the answer so far."""

    media_type = "text/event-stream"
    constraint_field = "text.format"

    def __init__(self, asked: ResponsesRequest) -> None:
        super().__init__(asked.inference)
        self._seals = asked.seals_thoughts
        self._number = 0  # of the next event
        self._tools = asked.tools
        self._open: Channel | Literal["call"] | None = None  # type of the open item
        self._arguments = ""  # of the open call
        self.dropped: Dropped | None = None
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
        self.know(info)
        return self._state("created") + self._state("in_progress")

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Token(_, text, channel):
                return self._grow(channel, text) if text else b""
            case ToolCallDelta():
                return self._call(event)
            case Done(completion):
                frames = self._close("incomplete" if completion.stop_reason == "length" else self._ended)
                self._finish(completion)
                return frames
            case Accepted() | ImageProgress() | Prefill() | PromptLogprobs() | Loop():
                return b""
        assert_never(event)

    def end(self) -> bytes:
        if self.response["status"] == "in_progress":  # the request only loads the model
            self.response |= {"status": "completed", "completed_at": int(time.time()), "usage": _usage([])}
        name = "completed" if self.response["status"] == "completed" else "incomplete"
        return self._state(name)

    def ping(self) -> bytes:
        return self._state("in_progress")

    def failure(self, refusal: Refusal) -> bytes:
        self._close("incomplete")
        self.response |= {"status": "failed", "error": {"code": _code(refusal), "message": refusal.message}}
        return self._state("failed")

    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        self.know(info)
        self.end()
        return dict(self.response)

    def know(self, info: ModelInfo | None) -> None:
        super().know(info)
        self.response["model"] = self.model

    def cancelled(self) -> None:
        """Stop: the client is gone."""
        self._close("incomplete")
        self.response |= {"status": "cancelled"}

    def _finish(self, completion: Completion) -> None:
        status: Status = "completed"
        if completion.stop_reason == "length":
            status = "incomplete"
            self.response["incomplete_details"] = {"reason": "max_output_tokens"}
        elif completion.stop_reason == "cancelled":
            status = "cancelled"
        if self.dropped is not None:
            self.figures = {**(self.figures or {}), "horizon": self.dropped.as_json()}
        self.response |= {"status": status, "completed_at": int(time.time()), "usage": _usage([completion])}

    def _grow(self, channel: Channel, text: str) -> bytes:
        """Append text to the open item, or to a new one."""
        frames = b""
        if channel != self._open:
            frames = self._close(self._ended) + self._begin(channel)
        self._item["content"][0]["text"] += text
        name = "output_text" if channel == "answer" else "reasoning_text"
        more: Json = {"logprobs": []} if channel == "answer" else {}
        return frames + self._of_part(f"{name}.delta", delta=text, **more)

    def _call(self, part: ToolCallDelta) -> bytes:
        """Append to the item of a call. A search and a tool of free text get their input as a whole."""
        if part.begins:
            frames, self._open = self._close(self._ended), "call"
            self.response["output"].append(self._tools.called(part.name).item(part.id))
            self._arguments = ""
            return frames + self._of_item("added")
        frames = b""
        self._arguments += part.arguments
        if self._item["type"] == "function_call":
            self._item["arguments"] = self._arguments
            if part.arguments:
                frames = self._of_call("function_call_arguments.delta", delta=part.arguments)
        return frames + (self._close("completed") if part.is_complete else b"")

    def _close_call(self, status: Status) -> bytes:
        item = self._item
        if item["type"] == "custom_tool_call":
            item["input"] = free_input(self._arguments)
            frames = self._of_call("custom_tool_call_input.delta", delta=item["input"])
            return frames + self._of_call("custom_tool_call_input.done", input=item["input"])
        item["status"] = status
        if item["type"] == "tool_search_call":
            call = ToolCall(item["call_id"], SEARCH, self._arguments, is_complete=status == "completed")
            item["arguments"] = arguments_of(call)
            return b""
        return self._of_call("function_call_arguments.done", arguments=item["arguments"], name=item["name"])

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
        """Close the open item, if any."""
        if self._open is None:
            return b""
        if self._open == "call":
            frames, self._open = self._close_call(status), None
            return frames + self._of_item("done")
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
    def _ended(self) -> Status:
        """Status of the open item where another begins: a call that is still open was not completed."""
        return "incomplete" if self._open == "call" else "completed"

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

    def _of_call(self, name: str, /, **values: object) -> bytes:
        return self._frame(name, item_id=self._item["id"], output_index=len(self.response["output"]) - 1, **values)

    def _state(self, name: str) -> bytes:
        """The response object; without items while they are streamed."""
        response = self.response if name not in ("created", "in_progress") else {**self.response, "output": []}
        return self._frame(name, response={**response, **(self.figures_field if response is self.response else {})})

    def _frame(self, name: str, /, **values: object) -> bytes:
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
    """An error code that clients know: they act on it."""
    if refusal.code == "context_length_exceeded":
        return refusal.code
    if refusal.status == 429:
        return "rate_limit_exceeded"
    return "server_error" if refusal.status >= 500 else "invalid_prompt"
