"""News of a chat that is open here: another program wrote in it."""

from enum import Enum

from localrun.chat.journal import Chat


class Others(Enum):
    """Kinds of such news; the values are the words for the user."""

    DELETED = "Another localrun deleted this chat; the next message here brings it back"
    ASK = "Another localrun asks in this chat; question and answer are shown once it is there"
    WROTE_ELSEWHERE = "Another localrun wrote in this chat, on another branch"
    WROTE_BELOW = "Another localrun wrote in this chat; you see it now"


def read_others(chat: Chat) -> Others | None:
    """Read what others appended, and go on to its end where they went on with the branch that is selected.

    None where there is nothing to tell.
    """
    before = [message for message in chat.tree.messages() if not message.unfinished]
    known, answered = {message.id for message in before}, {message.parent for message in before}
    was_deleted = chat.deleted
    try:
        chat.refresh()
    except OSError:
        return None  # writing will say why
    new = [message for message in chat.tree.messages() if message.id not in known]
    if chat.deleted and not was_deleted:
        return Others.DELETED
    if not new:
        return None
    if new[-1].unfinished or new[-1].role == "user":
        return Others.ASK
    head = chat.tree.head
    if head is None:
        return Others.WROTE_ELSEWHERE
    end = chat.tree.leaf_below(head)
    below = chat.tree.path(end)[len(chat.tree.path(head)) :]
    asked = [message for message in below if message.id in known]  # their question, of which there was news before
    if end in known or any(one.role != "user" or one.id in answered for one in asked):
        return Others.WROTE_ELSEWHERE  # also where it is below what was taken back here
    chat.tree.select(end)
    return Others.WROTE_BELOW
