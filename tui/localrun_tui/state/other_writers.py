"""Messages that another localrun writes into the open chat meanwhile."""

from contextlib import suppress
from typing import TYPE_CHECKING

from localrun_tui.state.messages import WrittenElsewhere

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun_tui.state.session import Session

SECONDS = 2.0  # between two looks at the file of the open chat
_ASKS = "Another localrun asks in this chat; question and answer are shown once it is there"
_BRANCH = "Another localrun wrote in this chat, on another branch: Ctrl+↑ and ←→ go there"


class OtherWriters:
    """Looks, while no answer is under way here, whether the file of the open chat has grown."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._told = ""

    def look(self) -> None:
        session = self._session
        if session.chat is not None and not session.answering and not session.asking:
            with suppress(RuntimeError):  # the app has ended
                session.disk.submit(self._read, session.chat)

    def _read(self, chat: "Chat") -> None:
        if not chat.has_grown or not (words := read_others(chat)):
            return
        if words != _ASKS or self._told != _ASKS:  # which is found again with every piece of the answer
            self._session.post(WrittenElsewhere(chat, words, words == _BRANCH))
        self._told = words


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
        return _ASKS
    head = chat.tree.head
    end = chat.tree.leaf_below(head) if head is not None else head
    if not any(message.id == end for message in new):
        return _BRANCH
    chat.tree.select(end)
    return "Another localrun wrote in this chat; you see it now"
