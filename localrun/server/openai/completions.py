"""POST /v1/completions: raw prompts, as text or as token ids, with logprobs of prompt and answer."""

from dataclasses import replace
from typing import Any, assert_never

from localrun.base.check import MAX_LOGPROBS
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
    ToolCallDelta,
)
from localrun.base.request import Json, Request
from localrun.server.inference import InferenceRequest
from localrun.server.openai.codec import OpenAICodec
from localrun.server.openai.fields import answers, max_tokens, openai_request, sampling, stops
from localrun.server.openai.logprobs import TextOffsets, completion_logprobs
from localrun.server.openai.usage import finish_reason
from localrun.server.request.constraint_fields import response_format
from localrun.server.request.json_body import Body

MAX_CHOICES = 64  # of all prompts together
USUAL_TOKENS = 16  # the default of this protocol
IGNORED = ("best_of", "user")
PROMPT_FORMS = "a string, a list of strings, token ids, or a list of lists of them is needed"


def read_completion(body: Body) -> InferenceRequest:
    """The request of a body. Raises Refusal, naming the field."""
    if body.text("suffix"):
        raise body.wrong("suffix", "localrun does not fill in the middle of a text")
    prompts, n = _prompts(body), answers(body)
    if len(prompts) * n > MAX_CHOICES:
        raise body.wrong("prompt", f"at most {MAX_CHOICES} choices are made at once: give fewer prompts, or a lower n")
    request = Request(
        sampling=sampling(body),
        max_tokens=_max_tokens(body),
        stop=stops(body),
        add_bos=body.flag("add_special_tokens", True),
        verbatim=True,
        logprobs=body.whole("logprobs", None, 0, MAX_LOGPROBS),
        constraint=response_format(body),
    )
    requests = tuple(_asking(request, prompt, body.flag("echo")) for prompt in prompts)
    return replace(openai_request(body, requests, IGNORED), n=n)


def _max_tokens(body: Body) -> int | None:
    """The longest answer; 0: only read the prompt."""
    if "max_tokens" not in body:
        return USUAL_TOKENS
    return max_tokens(body, "max_tokens") if body.values["max_tokens"] != 0 else 0


def _prompts(body: Body) -> list[str | list[int]]:
    prompt = body.values.get("prompt")
    prompts: list[Any] = prompt if isinstance(prompt, list) and not is_ids(prompt) else [prompt]
    if not prompts or not all(isinstance(one, str) or is_ids(one) for one in prompts):
        raise body.wrong("prompt", PROMPT_FORMS)
    return prompts


def is_ids(value: object) -> bool:
    """Whether a value of JSON is a prompt of token ids."""
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def _asking(request: Request, prompt: str | list[int], is_echo: bool) -> Request:
    """The request of one prompt. Logprobs come with the text of each token."""
    asked = replace(request, prompt=prompt) if isinstance(prompt, str) else replace(request, prompt_ids=tuple(prompt))
    with_prompt = is_echo and (asked.logprobs is not None or bool(asked.prompt_ids))
    return replace(asked, prompt_logprobs=asked.logprobs or 0) if with_prompt else asked


class CompletionCodec(OpenAICodec):
    """Writes text_completion objects, whole and as chunks."""

    constraint_field = "response_format"
    id_prefix, kind, chunk_kind = "cmpl-", "text_completion", "text_completion"

    def __init__(self, asked: InferenceRequest, with_usage: bool, is_echo: bool) -> None:
        super().__init__(asked, with_usage)
        self._choices = [_Choice(request, is_echo) for request in asked.requests for _ in range(asked.n)]

    def event(self, index: int, event: Event) -> bytes:
        choice = self._choices[index]
        match event:
            case PromptLogprobs(tokens):
                choice.prompt += tokens
            case Token(_, text, _, logprob):
                choice.add(text, logprob)
            case Done(completion):
                self.done(index, completion)
                choice.add("", None)
                return self._chunk(index, finish_reason(completion)) if self.asked.is_stream else b""
            case Accepted() | ImageProgress() | Prefill() | ToolCallDelta() | Loop():
                return b""
            case _:
                assert_never(event)
        return self._chunk(index) if self.asked.is_stream and choice.has_news else b""

    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        reasons = map(finish_reason, completions)
        return self.object(info, [self._choice(index, reason) for index, reason in enumerate(reasons)])

    def _chunk(self, index: int, reason: str | None = None) -> bytes:
        return self.chunk(self._choice(index, reason))

    def _choice(self, index: int, reason: str | None) -> Json:
        text, logprobs = self._choices[index].take()
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


class _Choice:
    """Text and logprobs of one choice that are still to be sent: all, or those since the last chunk."""

    def __init__(self, request: Request, is_echo: bool) -> None:
        self._request, self._is_echo = request, is_echo
        self.prompt: list[TokenLogprob] = []
        self._texts: list[str] = []
        self._tokens: list[TokenLogprob] = []
        self._offsets = TextOffsets(0)
        self._has_begun = False

    @property
    def has_news(self) -> bool:
        return bool(self._tokens or any(self._texts))

    def add(self, text: str, logprob: TokenLogprob | None) -> None:
        """The next piece of the answer; the prompt goes before the first."""
        if not self._has_begun:
            self._begin()
        self._texts.append(text)
        if logprob is not None:
            self._tokens.append(logprob)

    def take(self) -> tuple[str, Json | None]:
        """Text and logprobs to be sent."""
        text, tokens, self._texts, self._tokens = "".join(self._texts), self._tokens, [], []
        logprobs = None if self._request.logprobs is None else completion_logprobs(tokens, self._offsets)
        return text, logprobs

    def _begin(self) -> None:
        self._has_begun = True
        if not self._is_echo:
            return
        spelled = b"".join(token.piece for token in self.prompt).decode(errors="replace")
        text = spelled if self._request.prompt is None else self._request.prompt
        self._offsets = TextOffsets(len(text) - len(spelled) if self.prompt else len(text))
        self._texts.append(text)
        self._tokens += self.prompt
