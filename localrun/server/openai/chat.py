"""POST /v1/chat/completions: OpenAI's chat, as most clients speak it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import assert_never

from localrun.base.events import (
    Accepted,
    Completion,
    Done,
    Event,
    ImageProgress,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
)
from localrun.base.request import Json, Request, RequestMessage
from localrun.server.inference import InferenceRequest
from localrun.server.openai.codec import OpenAICodec
from localrun.server.openai.fields import (
    answers,
    max_tokens,
    openai_request,
    sampling,
    stops,
    think,
)
from localrun.server.openai.logprobs import chat_logprobs, wanted_logprobs
from localrun.server.openai.usage import finish_reason
from localrun.server.request.constraint_fields import response_format
from localrun.server.request.documents import KINDS as DOCUMENTS
from localrun.server.request.documents import document_text
from localrun.server.request.function_tools import function_tools
from localrun.server.request.images import is_image, read_image_part
from localrun.server.request.json_body import Body
from localrun.server.request.tool_choice_fields import with_tool_choice

IGNORED = (
    *("store", "metadata", "user", "safety_identifier", "verbosity", "prediction", "modalities"),
    *("prompt_cache_options", "prompt_cache_retention"),
)
REFUSED = {
    "audio": "localrun has none of this",
    "web_search_options": "localrun has none of this",
    "functions": "calls are offered by `tools` here",
    "function_call": "calls are chosen by `tool_choice` here",
}


def read_chat(body: Body) -> InferenceRequest:
    """The request of a body. Raises Refusal, naming the field."""
    for name, why in REFUSED.items():
        if body.values.get(name):
            raise body.wrong(name, why)
    messages = read_messages(body)
    request = Request(
        messages=messages,
        sampling=sampling(body),
        max_tokens=max_tokens(body, "max_completion_tokens", "max_tokens"),
        stop=stops(body),
        think=think(body),
        tools=function_tools(body),
        logprobs=wanted_logprobs(body),
        constraint=response_format(body),
        continues=continues(body, messages),
    )
    return replace(openai_request(body, (with_tool_choice(request, body),), IGNORED), n=answers(body))


def read_messages(body: Body) -> tuple[RequestMessage, ...]:
    """The messages of a chat. Raises Refusal where there are none."""
    messages = body.objects("messages")
    if not messages:
        raise body.wrong("messages", "at least one message is needed")
    return tuple(_message(message) for message in messages)


def continues(body: Body, messages: Sequence[RequestMessage]) -> bool:
    """Whether the last message is the beginning of the answer, to go on with. Raises Refusal where it cannot be."""
    if not body.flag("continue_final_message"):
        return False
    if messages[-1]["role"] != "assistant" or not messages[-1]["content"] or "tool_calls" in messages[-1]:
        raise body.wrong("continue_final_message", "the last message has to be text of the assistant")
    return True


def _message(body: Body) -> RequestMessage:
    """A message in the form that templates are given."""
    role = body.choice("role", ("system", "developer", "user", "assistant", "tool", "function"), "")
    given = {name: value for name, value in body.values.items() if value is not None}
    message: RequestMessage = {**given, "role": role, "content": content_of(body)}
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(body.values.get(name), str):
            message["reasoning_content"] = body.values[name]
    if "tool_calls" in message:
        message["tool_calls"] = [call.values for call in body.objects("tool_calls")]
    return message


def content_of(body: Body) -> str | list[Json]:
    """Content of a message, which is a string, a list of parts, or null."""
    return as_content(parts_of(body))


def as_content(parts: Iterable[Body]) -> str | list[Json]:
    """The text of all parts; a list of texts and images, in their order, where there are images."""
    runs = [(is_seen, list(run)) for is_seen, run in groupby(parts, is_image)]
    if not any(is_seen for is_seen, _ in runs):
        return text_of(part for _, run in runs for part in run)
    content: list[Json] = []
    for is_seen, run in runs:
        content += map(read_image_part, run) if is_seen else [{"type": "text", "text": text_of(run)}]
    return content


def parts_of(body: Body, name: str = "content") -> list[Body]:
    """Content as a list of parts."""
    content = body.values.get(name)
    if content is None or isinstance(content, str):
        return [Body({"text": content}, body.place(name))] if content else []
    if not isinstance(content, list):
        raise body.wrong(name, "a string or a list of parts is needed")
    return body.objects(name)


def text_of(parts: Iterable[Body]) -> str:
    """The text of all parts. Raises Refusal for a part of another type."""
    texts = []
    for part in parts:
        kind = part.text("type", "text")
        if kind in ("text", "input_text", "output_text"):
            texts.append(part.text("text"))
        elif kind == "refusal":
            texts.append(part.text("refusal"))
        elif kind in DOCUMENTS:
            texts.append(document_text(part))
        else:
            raise part.wrong("type", f"the model reads text and sees images; it cannot take {kind[:40]}")
    return "\n".join(texts)


def as_call(call: ToolCall) -> Json:
    """A tool call in the form of a message."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


class ChatCodec(OpenAICodec):
    """Writes chat.completion objects and chunks."""

    constraint_field = "response_format"
    id_prefix, kind, chunk_kind = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def __init__(self, asked: InferenceRequest, with_usage: bool) -> None:
        super().__init__(asked, with_usage)
        self._logprobs: dict[int, list[TokenLogprob]] = {}  # of each answer that is sent whole

    def begin(self, info: ModelInfo | None) -> bytes:
        start = {"role": "assistant", "content": ""}
        return super().begin(info) + b"".join(self._chunk(index, start) for index in range(self.asked.n_answers))

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Token(_, text, channel, logprob):
                if logprob is not None and not self.asked.is_stream:
                    self._logprobs.setdefault(index, []).append(logprob)
                field = "content" if channel == "answer" else "reasoning_content"
                return self._chunk(index, {field: text}, logprob=logprob) if text or logprob else b""
            case ToolCallDelta(number, id, name, arguments):
                function = {"arguments": arguments}
                begun = {"id": id, "type": "function", "function": {"name": name, **function}}
                call = {"index": number, **(begun if event.begins else {"function": function})}
                return self._chunk(index, {"tool_calls": [call]})
            case Done(completion):
                self.done(index, completion)
                return self._chunk(index, {}, finish_reason(completion))
            case Accepted() | ImageProgress() | Prefill() | PromptLogprobs() | Loop():
                return b""
        assert_never(event)

    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        return self.object(info, [self._choice(index, completion) for index, completion in enumerate(completions)])

    def _choice(self, index: int, completion: Completion) -> Json:
        message: Json = {"role": "assistant", "content": completion.text}
        if completion.thinking:
            message["reasoning_content"] = completion.thinking
        if completion.tool_calls:
            message["content"] = completion.text or None
            message["tool_calls"] = [as_call(call) for call in completion.tool_calls]
        tokens = self._logprobs.get(index)
        logprobs = None if tokens is None else chat_logprobs(tokens)
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(completion)}

    def _chunk(self, index: int, delta: Json, reason: str | None = None, logprob: TokenLogprob | None = None) -> bytes:
        logprobs = None if logprob is None else chat_logprobs([logprob])
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self.chunk(choice)
