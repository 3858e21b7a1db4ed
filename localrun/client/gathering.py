"""Batching of a worker's messages, so that as few as possible are sent."""

from collections.abc import Iterator

from localrun.base.events import Done, Token
from localrun.client.wire import Events, Progress, Reply


def gathered(replies: list[Reply]) -> Iterator[Reply]:
    """The same with fewer messages: events that follow each other in one, and of progress the last."""
    held: Reply | None = None
    for reply in replies:
        if held is not None and held.number == reply.number:
            match held.answer, reply.answer:
                case Events(before), Events(after):
                    held = Reply(reply.number, Events(before + after))
                    continue
                case Progress(), Progress():
                    held = reply
                    continue
        if held is not None:
            yield held
        held = reply
    if held is not None:
        yield held


def amid_an_answer(replies: list[Reply]) -> bool:
    """Whether more words are to come; after the end of an answer the next one's first words do not wait."""
    kinds = {type(event) for reply in replies if isinstance(reply.answer, Events) for event in reply.answer.events}
    return Token in kinds and Done not in kinds
