"""Answers that take events by hand."""

from localrun.base.request import Sampling
from localrun.chat.journal import ChatStore
from localrun.chat.tree import Message
from localrun.chat.turn import Answer, TurnOptions, begin_turn
from localrun_testing.scripted_client import INFO


def answer_to(text: str, begun: Message | None = None) -> Answer:
    """An answer that has just begun, in a chat of its own."""
    chat = ChatStore(None).create()
    question = chat.add_user(text).id
    request, _ = begin_turn(chat, question, TurnOptions(Sampling(temperature=0.5)), 0)
    return Answer(chat, question, request, INFO, begun)
