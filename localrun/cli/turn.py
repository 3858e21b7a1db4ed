"""One turn of a chat: the question is in it before it is answered, the answer after that, whole or half."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from localrun.base.errors import PromptTooLongError
from localrun.base.events import Completion, Done, Event, Token
from localrun.base.request import Request
from localrun.chat.conversation import Chat, Policy
from localrun.chat.overflow import drop_turn, make_room
from localrun.cli.console import note
from localrun.cli.session import Answering
from localrun.client.interface import Generation

if TYPE_CHECKING:
    from localrun.client.local import LocalClient

STATS = ("model", "precision", "prompt_tokens", "cached_tokens", "completion_tokens", "ttft_ms", "decode_tps", "seed")


class Listening:
    """A client whose texts are kept, for when it dies before it is done."""

    def __init__(self, client: "LocalClient") -> None:
        self._client = client
        self.texts = {"answer": "", "thinking": ""}

    def generate(self, request: Request) -> Generation:
        generation = self._client.generate(request)
        return Generation(self._heard(generation), generation.cancel)

    def _heard(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Token):
                self.texts[event.channel] += event.text
            yield event


Stream = Callable[[Listening, Request], Done]


def answer_in(
    chat: Chat,
    user_id: str,
    client: "LocalClient",
    shared: Answering,
    stream: Stream,
    ask: Callable[[], Policy] = lambda: "stop",
) -> Done:
    """Answer a message of `chat` and write the answer down. `ask` chooses a policy when the context is full.

    Without any answer the message stays in the chat, on a branch of its own, and the error goes on.
    """
    ctx = client.info.ctx
    reserve = min(ctx // 4, shared.max_tokens or ctx)
    _drop_turns(chat, user_id, ctx, reserve)
    while True:
        heard = Listening(client)
        try:
            done = stream(heard, request_for(chat, user_id, shared))
            break
        except PromptTooLongError:
            if chat.policy == "stop" and (policy := ask()) != "stop":
                chat.set(policy=policy)
                _drop_turns(chat, user_id, ctx, reserve)
            elif not (chat.policy == "drop" and _drop_one(chat, user_id)):
                chat.rewind(chat.tree[user_id].parent)
                raise
        except BaseException:
            if any(heard.texts.values()):
                chat.add_answer(user_id, heard.texts["answer"], heard.texts["thinking"], interrupted=True)
            else:
                chat.rewind(chat.tree[user_id].parent)
            raise
    _keep(chat, user_id, done)
    return done


def request_for(chat: Chat, user_id: str, shared: Answering) -> Request:
    return Request(
        messages=tuple(chat.request_messages(user_id)),
        sampling=shared.sampling,
        max_tokens=shared.max_tokens,
        stop=shared.stop,
        think=shared.think,
        stop_on_loop=shared.stop_on_loop,
        known_ids=chat.known_ids(user_id),
        now=chat.created,
        overflow="roll" if chat.policy == "roll" else "stop",
        chat_id=chat.id if chat.kept else "",
    )


def _drop_turns(chat: Chat, user_id: str, ctx: int, reserve: int) -> None:
    """Make room, where that is the policy, before an answer would be cut short. Says so."""
    if plan := make_room(chat, user_id, ctx, reserve):
        note(f"{plan}")


def _drop_one(chat: Chat, user_id: str) -> bool:
    """The same where a guess was too low; False when only the last turn is left."""
    dropped = drop_turn(chat, user_id)
    if dropped:
        note("the oldest turn was dropped: the model no longer sees it")
    return dropped


def reuse_line(c: Completion) -> str:
    """How much of the prompt was known, and why not more; empty where nobody tells."""
    if c.cached_tokens is None or c.prompt_tokens is None:
        return ""
    why = f"; {c.cache_note}" if c.cache_note else ""
    return f"reused {c.cached_tokens:,} of {c.prompt_tokens:,} tokens{why}"


def _keep(chat: Chat, user_id: str, done: Done) -> None:
    c = done.completion
    if not (c.text or c.thinking or c.token_ids):  # stopped before the first word
        chat.rewind(chat.tree[user_id].parent)
        return
    ids = (*done.prompt_ids, *c.token_ids) if done.prompt_ids else ()
    stats = {name: getattr(c, name) for name in STATS}
    chat.add_answer(user_id, c.text, c.thinking, ids, stats, interrupted=c.stop_reason == "cancelled")
