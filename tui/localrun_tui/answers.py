"""From a chat to what an engine is asked, and from its answer to what is kept. On the disk's thread."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from localrun.base.request import Message, Request, Think
from localrun.base.settings import read_settings
from localrun.chat.overflow import make_room

from .overflow import reserve_of
from .presets import sampling_of
from .turn import Turn

if TYPE_CHECKING:
    from localrun.chat.journal import Chat

_TEXTS = ("text", "thinking", "token_ids", "path", "notes")  # kept elsewhere, or not worth keeping


def build_request(chat: "Chat", message_id: str, think: Think, ctx: int) -> Request:
    """The request for an answer to `message_id`; reads config.toml, so that a change counts at once.

    Under the policy `drop` this is where the oldest turns go out of the model's sight.
    """
    settings = read_settings()
    if ctx:
        make_room(chat, message_id, ctx, reserve_of(ctx))
    return Request(
        messages=tuple(_in_turn(chat.request_messages(message_id))),
        sampling=sampling_of(settings, chat.preset),
        max_tokens=settings.max_tokens,
        think=think,
        stop_on_loop=settings.stop_on_loop is not False,
        known_ids=chat.known_ids(message_id),
        overflow="roll" if chat.policy == "roll" else "stop",
        now=chat.created,
        chat_id=chat.id if chat.kept else "",
    )


def _in_turn(messages: list[Message]) -> list[Message]:
    """Messages of the user that nobody answered become one with the next: templates want turns."""
    merged: list[Message] = []
    for message in messages:
        if merged and message["role"] == "user" == merged[-1]["role"]:
            merged[-1] = {**message, "content": f"{merged[-1]['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged


def keep_half(turn: Turn) -> None:
    """Write down what has come so far, for the case that this program does not live to see the end."""
    turn.draft = turn.draft or turn.chat.draft(turn.parent_id)
    turn.draft.write(turn.text, turn.thinking)


def keep_answer(turn: Turn) -> None:
    """Write the answer down, whole or half; nothing where none came."""
    text, thinking = turn.text, turn.thinking
    if turn.done is None and not text and not thinking:
        return
    completion = turn.done.completion if turn.done else None
    ids = (*turn.done.prompt_ids, *turn.done.completion.token_ids) if turn.done else ()
    interrupted = completion is None or completion.stop_reason == "cancelled"
    stats = _stats_of(turn)
    answer = turn.chat.add_answer(turn.parent_id, text, thinking, ids, stats, interrupted, turn.draft)
    turn.answer_id = answer.id


def _stats_of(turn: Turn) -> dict[str, Any]:
    """Its figures, without what is kept elsewhere; of a half one the model, and what went wrong."""
    if turn.done is None:
        error = {"error": turn.error.message} if turn.error else {}
        return {"model": turn.info.name, "backend": turn.info.backend, **error}
    figures = {name: value for name, value in asdict(turn.done.completion).items() if name not in _TEXTS}
    return figures if turn.ttft is None else {**figures, "ttft_ms": 1000 * turn.ttft}  # as it was shown before
