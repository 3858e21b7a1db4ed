"""Codec of POST /v1/messages: Anthropic's Messages, as Claude Code and its SDKs speak them."""

import secrets
from collections.abc import Mapping
from typing import assert_never

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
from localrun.server.anthropic.diagnosis import CacheDiagnostics
from localrun.server.inference import Codec, InferenceRequest
from localrun.server.refusal import Refusal
from localrun.server.sse import data_frame
from localrun.server.tool_arguments import arguments_of

SIGNATURE = "localrun"  # of thoughts: clients send it back, and insist on a non-empty one
_ERRORS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class MessageCodec(Codec):
    """Writes messages, and the events of one.

    The head of a stream says how much of the prompt is cached, so it waits for the engine to look; until then there are
    pings.
    """

    media_type = "text/event-stream"
    constraint_field = "output_config.format"

    def __init__(self, asked: InferenceRequest, diagnosis: CacheDiagnostics) -> None:
        super().__init__(asked)
        self._diagnosis, self._max_tokens = diagnosis, asked.requests[0].max_tokens
        self._id = f"msg_{secrets.token_hex(12)}"
        self._has_begun = False
        self._blocks: list[Json] = []  # of the content
        self._is_complete = False  # of the open call
        self._parts: list[str] = []  # of the text or the arguments of the open block

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Accepted() | ImageProgress() | PromptLogprobs() | Loop():
                return b""
            case ToolCallDelta():
                return self._head(0, 0) + self._call(event)
            case Prefill(_, cached, total):
                return self._head(total, cached)
            case Token(_, text, channel):
                return self._head(0, 0) + self._delta(channel, text) if text else b""
            case Done(completion):
                self._diagnosis.end(self._id, completion, self.figures)
                return self._head(0, 0) + self._close() + self._tail(completion)
        assert_never(event)

    def end(self) -> bytes:
        return _frame("message_stop")

    def ping(self) -> bytes:
        return _frame("ping")

    def failure(self, refusal: Refusal) -> bytes:
        return data_frame(error_body(refusal), "error")

    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        self.know(info)
        message = self._message()
        message["content"] = self._blocks
        message["usage"] = usage(completions[0])
        message["diagnostics"] = self._diagnosis.found
        return {**message, **self._stopped(completions[0])}

    def _message(self) -> Json:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _head(self, prompt: int, cached: int) -> bytes:
        """The beginning, once."""
        if self._has_begun:
            return b""
        self._has_begun = True
        message = self._message()
        message["usage"] = {**_input(prompt, cached), "output_tokens": 0}
        message["diagnostics"] = self._diagnosis.pending
        return _frame("message_start", message=message)

    def _delta(self, channel: Channel, text: str) -> bytes:
        """Append text to the open block, or to a new one."""
        start = b""
        kind = "thinking" if channel == "thinking" else "text"
        if not self._blocks or self._blocks[-1]["type"] != kind:
            start = self._open({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
        self._parts.append(text)
        return start + self._part({"type": f"{kind}_delta", kind: text})

    def _call(self, part: ToolCallDelta) -> bytes:
        """Begin or continue the block of a call."""
        if part.begins:
            return self._open({"type": "tool_use", "id": part.id, "name": part.name, "input": {}})
        self._parts.append(part.arguments)
        self._is_complete = part.is_complete
        delta = {"type": "input_json_delta", "partial_json": part.arguments}
        return self._part(delta) if part.arguments else b""

    def _open(self, block: Json) -> bytes:
        """Close the open block and begin a new one."""
        closed, self._is_complete = self._close(), False
        frame = _frame("content_block_start", index=len(self._blocks), content_block=block)
        self._blocks.append({**block})
        return closed + frame

    def _close(self) -> bytes:
        """Close the open block."""
        if not self._blocks:
            return b""
        block, signed, said = self._blocks[-1], b"", "".join(self._parts)
        self._parts = []
        if block["type"] == "tool_use":
            block["input"] = arguments_of(ToolCall(block["id"], block["name"], said, self._is_complete))
        else:
            block[block["type"]] = said
        if block["type"] == "thinking":
            block["signature"] = SIGNATURE
            signed = self._part({"type": "signature_delta", "signature": SIGNATURE})
        return signed + _frame("content_block_stop", index=len(self._blocks) - 1)

    def _part(self, delta: Json) -> bytes:
        return _frame("content_block_delta", index=len(self._blocks) - 1, delta=delta)

    def _tail(self, completion: Completion) -> bytes:
        found = {"diagnostics": self._diagnosis.found} if self._diagnosis.found else {}
        return _frame(
            "message_delta", delta=self._stopped(completion), usage=usage(completion), **found, **self.figures_field
        )

    def _stopped(self, completion: Completion) -> Json:
        """Why the answer ended. An answer that only repeats itself, or was cancelled from here, has ended its turn."""
        reason = "end_turn"
        if completion.ends_in_calls:
            reason = "tool_use"
        elif completion.stop_string:
            reason = "stop_sequence"
        elif completion.stop_reason == "length":
            is_asked = self._max_tokens is not None and completion.completion_tokens >= self._max_tokens
            reason = "max_tokens" if is_asked else "model_context_window_exceeded"
        return {"stop_reason": reason, "stop_sequence": completion.stop_string or None}


def usage(completion: Completion) -> Json:
    """Token counts of a message; `input_tokens` is without cached ones."""
    return {
        **_input(completion.prompt_tokens or 0, completion.cached_tokens or 0),
        "output_tokens": completion.completion_tokens,
        "output_tokens_details": {"thinking_tokens": completion.thinking_tokens or 0},
    }


def error_body(refusal: Refusal) -> Json:
    """An error in Anthropic's shape."""
    kind = _ERRORS.get(refusal.status, "api_error" if refusal.status >= 500 else "invalid_request_error")
    # Clients look for these words to know that a chat has to be made shorter.
    long = "prompt is too long: " if refusal.code == "context_length_exceeded" else ""
    error = {"type": kind, "message": long + refusal.message, "code": refusal.code, **refusal.figures}
    return {"type": "error", "error": error}


def _input(prompt: int, cached: int) -> Json:
    return {
        "input_tokens": prompt - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,  # every prompt is cached, at no charge
    }


def _frame(kind: str, **values: object) -> bytes:
    return data_frame({"type": kind, **values}, kind)
