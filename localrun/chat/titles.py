"""Titles of chats, written by the model that answered."""

import re

from localrun.base.request import Request, Sampling
from localrun.chat.conversation import Chat
from localrun.chat.requests import in_turn
from localrun.chat.sight import seen_chat
from localrun.chat.summary import title_of

_ASK = "Name this conversation in two to six words, in its own language. Reply with the name only."
_MOST_TOKENS = 24
_MOST_WORDS = 10
_MOST_CHARACTERS = 1000  # of a message that is sent to a server for a title


def wants_title(chat: Chat) -> bool:
    """Whether the last message is an answer and the chat has no given title."""
    path = chat.tree.path(chat.tree.head)
    answered = bool(path) and path[-1].role == "assistant" and not path[-1].interrupted
    return answered and not chat.own.get("title")


def wants_short_title(chat: Chat) -> bool:
    """Whether a server is asked for a title: once, after the first answer."""
    return wants_title(chat) and len(chat.tree) == 2


def title_request(chat: Chat, sees: bool = True) -> Request:
    """Request for a title, from a model that `sees` images or not.

    It continues from the cached chat and is not stored.
    """
    ask = {"role": "user", "content": _ASK}
    seen = seen_chat(chat, chat.visible(), sees)
    return Request(
        messages=tuple(in_turn([*seen.messages, ask])),
        images=seen.images,
        sampling=Sampling(temperature=0.0),
        max_tokens=_MOST_TOKENS,
        think="off",
        known_ids=chat.known_ids(),
        now=chat.created,
        stop_on_loop=True,
    )


def short_title_request(chat: Chat) -> Request:
    """Request for a title from a server, where tokens may cost.

    Only the beginnings of the first question and answer are sent.
    """
    path = chat.tree.path(chat.tree.head)[:2]
    said = [{"role": message.role, "content": message.text[:_MOST_CHARACTERS]} for message in path]
    return Request(
        messages=tuple(in_turn([*said, {"role": "user", "content": _ASK}])),
        sampling=Sampling(temperature=0.0),
        max_tokens=_MOST_TOKENS,
    )


def title_in(answer: str) -> str:
    """The title in the model's answer; empty where it is too long, or has no word."""
    line = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    line = re.sub(r"^(title|name)\s*:\s*", "", line.strip("#*_`\"'“”«» "), flags=re.IGNORECASE)
    line = line.strip("#*_`\"'“”«» ").rstrip(".")
    is_one = re.search(r"[^\W\d_]", line) and len(line.split()) <= _MOST_WORDS
    return title_of(line) if is_one else ""
