"""Codecs of Ollama's chat and generate: one JSON object a line, the last with all figures."""

from collections.abc import Callable
from datetime import UTC, datetime
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
from localrun.base.request import Json, RequestMessage
from localrun.server.inference import Codec, InferenceRequest
from localrun.server.json_response import to_json
from localrun.server.ollama.contexts import Contexts
from localrun.server.openai.logprobs import with_others
from localrun.server.refusal import Refusal
from localrun.server.tool_arguments import arguments_of

AnswerFields = Callable[[str, str], Json]  # answer and thinking, as the fields of an object


def chat_said(answer: str, thinking: str) -> Json:
    """Fields of an answer of /api/chat."""
    return {"message": {"role": "assistant", "content": answer, **({"thinking": thinking} if thinking else {})}}


def generate_said(answer: str, thinking: str) -> Json:
    """Fields of an answer of /api/generate."""
    return {"response": answer, **({"thinking": thinking} if thinking else {})}


def as_call(number: int, call: ToolCall) -> Json:
    """A call in the form of a message."""
    return {"id": call.id, "function": {"index": number, "name": call.name, "arguments": arguments_of(call)}}


class OllamaCodec(Codec):
    """Writes lines. With `contexts` the last one has the ids of the chat, to continue it."""

    media_type = "application/x-ndjson"
    constraint_field = "format"

    def __init__(self, asked: InferenceRequest, said: AnswerFields, contexts: Contexts | None = None) -> None:
        super().__init__(asked)
        self._said, self._contexts = said, contexts
        self._messages = () if asked.requests[0].images else asked.requests[0].messages  # images have no ids to send
        self._context: list[int] = []
        self._arguments: list[str] = []  # of the open call
        self._logprobs: list[Json] = []  # of an answer that is sent whole

    def event(self, index: int, event: Event) -> bytes:
        match event:
            case Token(_, text, channel, logprob):
                return self._token(text, channel, [] if logprob is None else [with_others(logprob)])
            case Done(completion, prompt_ids):
                self._remember(completion, prompt_ids)
                return line({**self._last(completion, "", ""), **self.figures_field})
            case ToolCallDelta():
                return self._call(event)
            case Accepted() | ImageProgress() | Prefill() | PromptLogprobs() | Loop():
                return b""
        assert_never(event)

    def _token(self, text: str, channel: Channel, logprobs: list[Json]) -> bytes:
        if not self.asked.is_stream:
            self._logprobs += logprobs
        told = {"logprobs": logprobs} if logprobs else {}
        return line({**self._piece(channel, text), **told}) if text or told else b""

    def _call(self, part: ToolCallDelta) -> bytes:
        """A call once it is complete: Ollama sends calls in one piece, and none that was cut."""
        self._arguments = [] if part.begins else [*self._arguments, part.arguments]
        if not part.is_complete:
            return b""
        call = ToolCall(part.id, part.name, "".join(self._arguments))
        piece = self._piece("answer", "")
        piece["message"]["tool_calls"] = [as_call(part.index, call)]
        return line(piece)

    def end(self) -> bytes:
        return b""

    def ping(self) -> bytes:
        return line(self._piece("answer", ""))

    def failure(self, refusal: Refusal) -> bytes:
        return line(error_body(refusal))

    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        self.know(info)
        completion = completions[0]
        last = self._last(completion, completion.text, completion.thinking)
        complete = [call for call in completion.tool_calls if call.is_complete]
        if complete:
            last["message"]["tool_calls"] = [as_call(number, call) for number, call in enumerate(complete)]
        return {**last, "logprobs": self._logprobs} if self._logprobs else last

    def _piece(self, channel: Channel, text: str) -> Json:
        said = self._said(text, "") if channel == "answer" else self._said("", text)
        return {"model": self.model, "created_at": now(), **said, "done": False}

    def _last(self, completion: Completion, answer: str, thinking: str) -> Json:
        """The last object. Durations in nanoseconds; counts include cached tokens."""
        timings = completion.timings
        before = timings.load_ms + timings.queue_ms
        return {
            "model": self.model,
            "created_at": now(),
            **self._said(answer, thinking),
            "done": True,
            "done_reason": "length" if completion.stop_reason == "length" else "stop",
            **({"context": self._context} if self._context else {}),
            "total_duration": _ns(before + timings.restore_ms + timings.prefill_ms + timings.decode_ms),
            "load_duration": _ns(timings.load_ms),
            "prompt_eval_count": completion.prompt_tokens or 0,
            "prompt_eval_cached_count": completion.cached_tokens or 0,
            "prompt_eval_duration": _ns(timings.restore_ms + timings.prefill_ms),
            "eval_count": completion.completion_tokens,
            "eval_duration": _ns(timings.decode_ms),
        }

    def _remember(self, completion: Completion, prompt_ids: tuple[int, ...]) -> None:
        if self._contexts is None or not self._messages:
            return
        self._context = [*prompt_ids, *completion.token_ids]
        answer: RequestMessage = {"role": "assistant", "content": completion.text}
        if completion.thinking:
            answer["reasoning_content"] = completion.thinking
        self._contexts.put(self._context, (*self._messages, answer))


def nothing_said(model: str, said: AnswerFields, reason: str) -> Json:
    """The answer to a request that only loads or unloads a model."""
    return {"model": model, "created_at": now(), **said("", ""), "done": True, "done_reason": reason}


def error_body(refusal: Refusal) -> Json:
    """An error in Ollama's shape."""
    return {"error": refusal.message, "code": refusal.code, **refusal.figures}


def line(values: Json) -> bytes:
    """One object of a stream."""
    return to_json(values) + b"\n"


def now() -> str:
    """The time as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)
