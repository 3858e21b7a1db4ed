"""One turn of a chat, for every face: the request to the engine, and what is stored of the answer."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from localrun.base.constraint import Constraint
from localrun.base.content import Content, Part, TextPart, text_of
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.events import (
    Accepted,
    Channel,
    Done,
    ImageProgress,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
    TokenLogprob,
    ToolCallDelta,
)
from localrun.base.request import Json, Request, RequestMessage, Sampling, Think
from localrun.base.tool_events import CallsMade, ToolDone, ToolStarted, TurnEvent
from localrun.chat.conversation import Chat
from localrun.chat.draft import Draft
from localrun.chat.overflow import OverflowPlan, make_room, reserve_of
from localrun.chat.prompt_progress import PromptProgress
from localrun.chat.sight import seen_chat
from localrun.chat.tree import Message

TurnPhase = Literal["starting", "waiting", "looking", "reading", "thinking", "writing", "calling"]

_SHORTEST_PACE = 0.2  # seconds that a rate is told of
_NOT_STATS = ("text", "thinking", "tool_calls", "token_ids", "path", "notes")  # kept elsewhere, or not worth keeping


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Options of an answer, the same for every turn until the user changes them."""

    sampling: Sampling
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    think: Think = "auto"
    stop_on_loop: bool = False
    constraint: Constraint | None = None
    tools: tuple[Json, ...] = ()  # that the model may call
    logprobs: int | None = None  # likeliest tokens told beside each that comes; None: no logprobs

    def request(self, messages: Sequence[RequestMessage], **more: Any) -> Request:
        """Request for an answer to `messages`; `more` are further fields of it."""
        return Request(
            messages=tuple(messages),
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            stop=self.stop,
            think=self.think,
            stop_on_loop=self.stop_on_loop,
            constraint=self.constraint,
            tools=self.tools,
            logprobs=self.logprobs,
            **more,
        )


def begin_turn(
    chat: Chat, question: str, options: TurnOptions, ctx: int, sees: bool = True
) -> tuple[Request, OverflowPlan | None]:
    """Request for an answer to a message of `chat`, in a context of `ctx` tokens; 0 where unknown. `sees`: whether the
    model gets images.

    Under the policy `drop` the oldest turns are dropped here: the plan says which.
    """
    plan = make_room(chat, question, ctx, reserve_of(ctx, options.max_tokens)) if ctx else None
    seen = seen_chat(chat, chat.visible(question), sees)
    request = options.request(
        seen.messages,
        images=seen.images,
        known_ids=chat.known_ids(question),
        now=chat.created,
        overflow="roll" if chat.policy == "roll" else "stop",
        chat_id=chat.id if chat.kept else "",
    )
    return request, plan


def continue_turn(chat: Chat, cut: Message, options: TurnOptions, sees: bool = True) -> Request:
    """Request for the rest of an answer that was cut: within its text, or after results of calls."""
    seen = seen_chat(chat, chat.visible(cut.id), sees)
    return options.request(
        seen.messages,
        images=seen.images,
        continues=seen.messages[-1]["role"] == "assistant",
        known_ids=chat.known_ids(cut.id) if cut.ids else (),
        now=chat.created,
        overflow="roll" if chat.policy == "roll" else "stop",
        chat_id=chat.id if chat.kept else "",
    )


def preview_request(
    chat: Chat, content: Content, options: TurnOptions, instead_of: str | None = None, sees: bool = True
) -> Request:
    """The request that sending `content`, if need be in the place of a message, would make; with no parts, that of the
    chat as it is."""
    more = [Message("", None, "user", content)] if content else []
    before = chat.visible()
    if instead_of is not None and instead_of in chat.tree:
        parent = chat.tree[instead_of].parent
        before = chat.visible(parent) if parent else []
    seen, known_ids = seen_chat(chat, [*before, *more], sees), ids_before(chat, instead_of)
    return options.request(seen.messages, images=seen.images, known_ids=known_ids, now=chat.created, chat_id="")


def ids_before(chat: Chat, instead_of: str | None = None) -> tuple[int, ...]:
    """Token ids before a new message, or before the one that it takes the place of, as the engine had them."""
    if instead_of is None or instead_of not in chat.tree:
        return chat.known_ids()
    parent = chat.tree[instead_of].parent
    return chat.known_ids(parent) if parent else ()


def may_go_on(message: Message) -> bool:
    """Whether an answer ended before the model was done, or was changed since."""
    stopped = message.stats.get("stop_reason") in ("length", "cancelled", "loop")
    changed = not message.stats
    return message.role == "assistant" and (message.interrupted or message.unfinished or stopped or changed)


class Answer:
    """A running answer to the message `question` of `chat`: its parts so far, and what was stored of it.

    `take` receives every event of its generations and tools. `begun` is the answer that it continues.
    """

    def __init__(
        self, chat: Chat, question: str, request: Request, info: ModelInfo, begun: Message | None = None
    ) -> None:
        self.chat, self.question = chat, question
        self.info = info  # of the model that answers
        self.begun = begun
        self.temperature = request.sampling.temperature  # None leaves it to the model
        self.began = time.monotonic()
        self.prompt: PromptProgress | None = None  # of the generation under way
        self.image: ImageProgress | None = None  # of the image that is looked at
        self.first_token: float | None = None  # when it came, as `began`
        self.first_word: float | None = None  # when the first text came that is no thinking
        self.n_tokens = 0
        self.n_held = 0  # tokens of the context in use, as far as it was told
        self.wrote_from: float | None = None  # when the generation under way began to write, as `began`
        self._pace: tuple[float, int] | None = None  # first token of this generation: when, and how many came before
        self.loop: Loop | None = None
        self.logprobs: list[TokenLogprob] = []  # where they were asked for; they are not stored
        self._open: set[str] = set()  # ids of calls that have no result yet
        self.done: Done | None = None
        self.error: LocalrunError | None = None  # that ended it
        self.kept: Message | None = None
        self._draft: Draft | None = None
        self._adapters = chat.own.get("adapters")  # beside the weights that answer
        self._ended: list[Part] = []  # parts that grow no more
        self._texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}
        if begun is not None:
            self._ended += begun.content
            if self._ended and isinstance(last := self._ended[-1], TextPart):
                self._ended.pop()
                self._texts["answer"].append(last.text)
            self._texts["thinking"].append(begun.thinking)
        self._n_begun = len(self._texts["answer"])

    @property
    def content(self) -> Content:
        """The parts so far."""
        text = "".join(self._texts["answer"])
        return (*self._ended, TextPart(text)) if text or not self._ended else tuple(self._ended)

    @property
    def text(self) -> str:
        """All text so far, calls and results included; later text is appended."""
        return text_of(self.content)

    @property
    def thinking(self) -> str:
        return "".join(self._texts["thinking"])

    @property
    def phase(self) -> TurnPhase:
        """Stage of the turn; `waiting` for a server that has not answered, which may queue or read the prompt."""
        if self._open:
            return "calling"
        if self.wrote_from is not None:
            return "writing" if self.text else "thinking"
        if self.image is not None:
            return "looking"
        if self.prompt is not None and self.prompt.last.total:
            return "reading"
        return "waiting" if self.info.engine == "remote" else "starting"

    def tps(self, now: float) -> float:
        """Tokens a second of the generation under way, as of `now`; 0 before that can be told."""
        began, before = self._pace or (now, self.n_tokens)
        n_more = self.n_tokens - before - 1
        return n_more / (now - began) if n_more > 0 and now - began > _SHORTEST_PACE else 0.0

    @property
    def ttft(self) -> float | None:
        """Seconds until the first token."""
        return None if self.first_token is None else self.first_token - self.began

    @property
    def stats(self) -> dict[str, Any]:
        """The figures that the chat stores."""
        if self.done is None:
            failure = {"error": self.error.message} if self.error else {}
            return {"model": self.info.name, "backend": self.info.backend, **failure}
        figures = self.done.completion.flat()
        waited = {} if self.ttft is None else {"ttft_ms": 1000 * self.ttft}
        asked = {} if self.temperature is None else {"temperature": self.temperature}
        beside = {"adapters": self._adapters} if self._adapters else {}
        return {name: value for name, value in figures.items() if name not in _NOT_STATS} | waited | asked | beside

    def take(self, event: TurnEvent) -> None:
        match event:
            case Accepted() | PromptLogprobs() | ToolStarted():
                pass
            case ToolCallDelta():  # it may be all that comes before a person is asked
                self.wrote_from = self.wrote_from or time.monotonic()
                self.first_token = self.first_token or self.wrote_from
            case ImageProgress():
                self.image = event
            case Prefill():
                now = time.monotonic()
                self.prompt = PromptProgress(event, self.prompt.began if self.prompt else now, now)
                self.image, self.n_held = None, event.done
            case Token(_, text, channel, logprob):
                self.logprobs += [logprob] if logprob is not None else []
                now = time.monotonic()
                self.wrote_from = self.wrote_from or now
                self.first_token = self.first_token or now
                if text and channel == "answer":
                    self.first_word = self.first_word or now
                self._pace = self._pace or (now, self.n_tokens)
                self.n_tokens += 1
                self.n_held += 1
                self._texts[channel].append(text)
            case Loop():
                self.loop = event
            case CallsMade(done, calls):
                said = [*self._texts["answer"][: self._n_begun], done.completion.text]
                self._ended += [TextPart(text)] if (text := "".join(said)) else []
                self._ended += [replace(call, thought_end=len(self.thinking)) for call in calls]
                self._texts["answer"], self._n_begun = [], 0
                self._pace = self.wrote_from = self.prompt = None
                self._open = {call.id for call in calls}
            case ToolDone(result):
                self._open.discard(result.id)
                self._ended.append(result)
            case Done():
                self.done = event
            case _:
                assert_never(event)

    def keep_half(self) -> None:
        """Store what has come so far, in case this program ends before the answer does."""
        self._draft = self._draft or self.chat.draft(self.question)
        self._draft.write(self.text, self.thinking)

    def keep(self) -> Message | None:
        """Store the answer, whole or half; None where it is empty."""
        done = self.done
        if done is None and not self.text and not self.thinking:
            return None
        ids = (*done.prompt_ids, *done.completion.token_ids) if done is not None and done.prompt_ids else ()
        interrupted = done is None or done.completion.stop_reason == "cancelled"
        self.kept = self.chat.add_answer(
            self.question, self.content, self.thinking, ids, self.stats, interrupted=interrupted, draft=self._draft
        )
        return self.kept
