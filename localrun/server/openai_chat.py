"""POST /v1/chat/completions: OpenAI's chat, as most clients speak it."""

import secrets
import time
from collections.abc import Iterable
from typing import assert_never

from localrun.base.events import Accepted, Completion, Done, Event, Loop, ModelInfo, Prefill, Token
from localrun.base.request import Message, Request
from localrun.server.inference import InferenceRequest, Json
from localrun.server.json_body import Body
from localrun.server.openai_fields import max_tokens, priority, refuse_until_there, sampling, stops, think
from localrun.server.openai_usage import finish_reason, usage
from localrun.server.refusal import Refusal
from localrun.server.sse import data_frame

MAX_ANSWERS = 8
IGNORED = (
    *("store", "metadata", "user", "safety_identifier", "verbosity", "prediction", "modalities"),
    *("prompt_cache_options", "prompt_cache_retention"),
)
REFUSED = ("audio", "web_search_options")


def read_chat(body: Body) -> InferenceRequest:
    """A body as the request that it is. Raises Refusal, naming the field."""
    for name in REFUSED:
        if name in body:
            raise body.wrong(name, "localrun has none of this")
    refuse_until_there(body)
    messages = body.objects("messages")
    if not messages:
        raise body.wrong("messages", "at least one message is needed")
    request = Request(
        messages=tuple(_message(message) for message in messages),
        sampling=sampling(body),
        max_tokens=max_tokens(body, "max_completion_tokens", "max_tokens"),
        stop=stops(body),
        think=think(body),
        tools=tuple(tool.values for tool in body.objects("tools")),
    )
    return InferenceRequest(
        model=body.text("model"),
        requests=(request,),
        is_stream=body.flag("stream"),
        n=body.whole("n", 1, 1, MAX_ANSWERS) or 1,
        priority=priority(body),
        session=body.text("prompt_cache_key"),
        keep_alive=body.seconds("keep_alive"),
        ignored=tuple(name for name in IGNORED if name in body),
        with_figures=body.values.get("localrun") is not False,
    )


def _message(body: Body) -> Message:
    """A message in the form that templates are given."""
    role = body.choice("role", ("system", "developer", "user", "assistant", "tool", "function"), "")
    message: Message = {**body.values, "role": role, "content": content_of(body)}
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(body.values.get(name), str):
            message["reasoning_content"] = body.values[name]
    return message


def content_of(body: Body) -> str:
    """The text of a message, whose content is a string, a list of parts, or null."""
    return text_of(parts_of(body))


def parts_of(body: Body, name: str = "content") -> list[Body]:
    """Content as parts, however it was written."""
    content = body.values.get(name)
    if content is None or isinstance(content, str):
        return [Body({"text": content}, body.place(name))] if content else []
    return body.objects(name)


def text_of(parts: Iterable[Body]) -> str:
    """The text of all parts. Raises Refusal for one that is something else."""
    texts = []
    for part in parts:
        kind = part.text("type", "text")
        if kind in ("text", "input_text", "output_text"):
            texts.append(part.text("text"))
        elif kind == "refusal":
            texts.append(part.text("refusal"))
        else:
            raise part.wrong("type", f"the model reads text; it cannot take {kind[:40]}")
    return "\n".join(texts)


class ChatCodec:
    """Writes chat.completion objects and chunks."""

    media_type = "text/event-stream"

    def __init__(self, asked: InferenceRequest, with_usage: bool) -> None:
        self._model, self._with_usage, self._n = asked.model, with_usage, asked.n
        self._id, self._created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())
        self._done: list[Completion] = []
        self._fingerprint: str | None = None
        self.figures: Json | None = None

    def begin(self, info: ModelInfo | None) -> bytes:
        if info is not None:
            self._model, self._fingerprint = self._model or info.name, info.fingerprint or None
        start = {"role": "assistant", "content": ""}
        return b"".join(self._chunk(index, start) for index in range(self._n))

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Token(_, text, channel):
                field = "content" if channel == "answer" else "reasoning_content"
                return self._chunk(index, {field: text}) if text else b""
            case Done(completion):
                self._done.append(completion)
                return self._chunk(index, {}, finish_reason(completion), self.figures)
            case Accepted() | Prefill() | Loop():
                return b""
        assert_never(event)

    def end(self) -> bytes:
        total = self._frame({"choices": [], "usage": usage(self._done)}) if self._with_usage else b""
        return total + data_frame("[DONE]")

    def ping(self) -> bytes:
        return b": ping\n\n"

    def failure(self, refusal: Refusal) -> bytes:
        return data_frame(error_body(refusal))

    def whole(self, info: ModelInfo, completions: list[Completion]) -> Json:
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._model or info.name,
            "system_fingerprint": info.fingerprint or None,
            "choices": [_choice(index, completion) for index, completion in enumerate(completions)],
            "usage": usage(completions),
        }

    def _chunk(self, index: int, delta: Json, reason: str | None = None, figures: Json | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return self._frame({"choices": [choice], **({"localrun": figures} if figures else {})})

    def _frame(self, values: Json) -> bytes:
        head = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "system_fingerprint": self._fingerprint,
        }
        return data_frame({**head, **values})


def _choice(index: int, completion: Completion) -> Json:
    message: Json = {"role": "assistant", "content": completion.text}
    if completion.thinking:
        message["reasoning_content"] = completion.thinking
    return {"index": index, "message": message, "logprobs": None, "finish_reason": finish_reason(completion)}


def error_body(refusal: Refusal) -> Json:
    """An error in OpenAI's shape."""
    error = {
        "message": refusal.message,
        "type": refusal.kind,
        "code": refusal.code,
        "param": refusal.param,
        **refusal.figures,
    }
    return {"error": error}
