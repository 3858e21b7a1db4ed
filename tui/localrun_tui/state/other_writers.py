"""Messages that another localrun writes into the open chat meanwhile."""

from typing import TYPE_CHECKING

from localrun_tui.state.messages import WrittenElsewhere

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun_tui.state.session import Session

SECONDS = 2.0  # between two looks at the file of the open chat


class OtherWriters:
    """Looks, while no answer is under way here, whether the file of the open chat has grown."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def look(self) -> None:
        session = self._session
        if session.chat is not None and not session.answering and not session.asking:
            session.disk.submit(self._read, session.chat)

    def _read(self, chat: "Chat") -> None:
        if chat.has_grown and (words := read_others(chat)):
            self._session.post(WrittenElsewhere(chat, words))


def read_others(chat: "Chat") -> str:
    """Read what others appended, and go on to its end where they went on with the branch that is shown.

    Gives a sentence about it, empty where there is nothing to tell. On the disk's thread only.
    """
    known = {message.id for message in chat.tree.messages() if not message.unfinished}
    was_deleted = chat.deleted
    try:
        chat.refresh()
    except OSError:
        return ""  # writing will say why
    new = [message for message in chat.tree.messages() if message.id not in known]
    if chat.deleted and not was_deleted:
        return "Another localrun deleted this chat; the next message here brings it back"
    if not new:
        return ""
    if new[-1].unfinished or new[-1].role == "user":
        return "Another localrun asks in this chat; question and answer are shown once it is there"
    head = chat.tree.head
    end = chat.tree.leaf_below(head) if head is not None else head
    if not any(message.id == end for message in new):
        return "Another localrun wrote in this chat, on another branch: Ctrl+↑ and ←→ go there"
    chat.tree.select(end)
    return "Another localrun wrote in this chat; you see it now"
