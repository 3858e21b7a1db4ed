"""One turn of a chat, whichever face it is in: what an engine is asked, and what is kept of its answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from localrun.base.content import Content, as_message_content
from localrun.base.errors import LocalrunError
from localrun.base.events import Accepted, Channel, Completion, Done, Event, Loop, ModelInfo, Prefill, Token
from localrun.base.request import Message as RequestMessage
from localrun.base.request import Request, Sampling, Think
from localrun.chat.conversation import Chat
from localrun.chat.draft import Draft
from localrun.chat.overflow import OverflowPlan, make_room, reserve_of
from localrun.chat.requests import in_turn
from localrun.chat.tree import Message

_NOT_STATS = ("text", "thinking", "token_ids", "path", "notes")  # kept elsewhere, or not worth keeping


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How to answer: what is the same for every turn until the user changes it."""

    sampling: Sampling
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    think: Think = "auto"
    stop_on_loop: bool = False

    def request(self, messages: Sequence[RequestMessage], **more: Any) -> Request:
        """A request for an answer to `messages`; `more` are further fields of it."""
        return Request(
            messages=tuple(messages),
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            stop=self.stop,
            think=self.think,
            stop_on_loop=self.stop_on_loop,
            **more,
        )


def begin_turn(chat: Chat, question: str, options: TurnOptions, ctx: int) -> tuple[Request, OverflowPlan | None]:
    """The request for an answer to a message of `chat`, in a context of `ctx` tokens; 0 where nobody tells.

    Under the policy `drop` this is where the oldest turns go out of the model's sight: the plan says which.
    """
    plan = make_room(chat, question, ctx, reserve_of(ctx, options.max_tokens)) if ctx else None
    request = options.request(
        in_turn(chat.request_messages(question)),
        known_ids=chat.known_ids(question),
        now=chat.created,
        overflow="roll" if chat.policy == "roll" else "stop",
        chat_id=chat.id if chat.kept else "",
    )
    return request, plan


def continue_turn(chat: Chat, cut: Message, options: TurnOptions) -> Request:
    """The request for the end of an answer of `chat` that was cut."""
    return options.request(
        in_turn(chat.request_messages(cut.id)),
        continues=True,
        known_ids=chat.known_ids(cut.id) if cut.ids else (),
        now=chat.created,
        overflow="roll" if chat.policy == "roll" else "stop",
        chat_id=chat.id if chat.kept else "",
    )


def preview_request(chat: Chat, content: Content, options: TurnOptions) -> Request:
    """The request that sending `content` would make; with no parts, that of the chat as it is."""
    more: list[RequestMessage] = [{"role": "user", "content": as_message_content(content)}] if content else []
    return options.request(
        in_turn([*chat.request_messages(), *more]), known_ids=chat.known_ids(), now=chat.created, chat_id=""
    )


def may_go_on(message: Message) -> bool:
    """Whether an answer ended before the model was done with it, or was changed since."""
    stopped = message.stats.get("stop_reason") in ("length", "cancelled", "loop")
    changed = not message.stats
    return message.role == "assistant" and (message.interrupted or message.unfinished or stopped or changed)


class Answer:
    """What has come of an answer so far. `take` every event of its generation. `begun` is what it goes on from."""

    def __init__(self, info: ModelInfo, begun: Message | None = None) -> None:
        self.info = info  # of the model that answers
        self.begun = begun
        self.temperature: float | None = None  # that was asked for; None leaves it to the model
        self.prefill: Prefill | None = None
        self.loop: Loop | None = None
        self.first_token: float | None = None  # when it came, on the monotonic clock
        self.done: Done | None = None
        self.n_tokens = 0
        self._texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}
        if begun is not None:
            self._texts = {"answer": [begun.text], "thinking": [begun.thinking]}

    @property
    def text(self) -> str:
        return "".join(self._texts["answer"])

    @property
    def thinking(self) -> str:
        return "".join(self._texts["thinking"])

    def take(self, event: Event) -> None:
        match event:
            case Accepted():
                pass
            case Prefill():
                self.prefill = event
            case Token():
                self.first_token = self.first_token or time.monotonic()
                self.n_tokens += 1
                self._texts[event.channel].append(event.text)
            case Loop():
                self.loop = event
            case Done():
                self.done = event
            case _:
                assert_never(event)


def keep_answer(
    chat: Chat,
    question: str,
    answer: Answer,
    *,
    error: LocalrunError | None = None,
    ttft: float | None = None,
    draft: Draft | None = None,
) -> Message | None:
    """Write an answer down, whole or half; None where nothing came of it.

    `error` ended it; `ttft` is the seconds that the user waited for it, where somebody looked; `draft` has its pieces.
    """
    done = answer.done
    if done is None:
        if not answer.text and not answer.thinking:
            return None
        failure = {"error": error.message} if error else {}
        stats: dict[str, Any] = {"model": answer.info.name, "backend": answer.info.backend, **failure}
        return chat.add_answer(question, answer.text, answer.thinking, (), stats, interrupted=True, draft=draft)
    c = done.completion
    ids = (*done.prompt_ids, *c.token_ids) if done.prompt_ids else ()
    stats = stats_of(c) if ttft is None else {**stats_of(c), "ttft_ms": 1000 * ttft}
    if answer.temperature is not None:
        stats["temperature"] = answer.temperature
    cancelled = c.stop_reason == "cancelled"
    begun = answer.begun
    text, thinking = (begun.text + c.text, begun.thinking + c.thinking) if begun else (c.text, c.thinking)
    return chat.add_answer(question, text, thinking, ids, stats, interrupted=cancelled, draft=draft)


def stats_of(completion: Completion) -> dict[str, Any]:
    """The figures of an answer that its chat keeps."""
    return {name: value for name, value in completion.flat().items() if name not in _NOT_STATS}
