"""Probabilities of the tokens of an answer, which are not kept: the model reads the chat once more for them."""

from localrun.base.errors import UsageError
from localrun.base.request import Request
from localrun.base.sanitize import clean
from localrun.chat.conversation import Chat
from localrun.chat.tree import Message

N_OTHERS = 4  # likeliest tokens in the place of each


def shown_token(piece: bytes) -> str:
    """A token on one line: ⏎ ends a line, · is a blank; ∅ where nothing of it can be shown."""
    text = piece.decode("utf-8", "replace").replace("\n", "⏎").replace("\t", "⇥").replace(" ", "·")
    return clean(text, keep_newlines=False) or "∅"


def last_answer(chat: Chat) -> Message:
    """The last answer of the branch. UsageError without one whose tokens are known."""
    answers = [one for one in chat.tree.path(chat.tree.head) if one.role == "assistant"]
    if not answers:
        raise UsageError("there is no answer yet")
    if not answers[-1].stats.get("completion_tokens") or not chat.known_ids(answers[-1].id):
        raise UsageError("the tokens of this answer are not known", "ask again with a model on this machine")
    return answers[-1]


def odds_request(chat: Chat, answer: Message) -> Request:
    """Request for the logprobs of all tokens up to the end of an answer; nothing is written."""
    return Request(prompt_ids=chat.known_ids(answer.id), prompt_logprobs=N_OTHERS, max_tokens=0)
