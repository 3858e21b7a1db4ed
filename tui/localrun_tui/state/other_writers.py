"""Messages that another localrun writes into the open chat meanwhile."""

from contextlib import suppress
from typing import TYPE_CHECKING

from localrun_tui.state.messages import WrittenElsewhere

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.chat.other_writers import Others
    from localrun_tui.state.session import Session

SECONDS = 2.0  # between two looks at the file of the open chat


class OtherWriters:
    """Looks, while no answer is under way here, whether the file of the open chat has grown."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._told: Others | None = None

    def look(self) -> None:
        session = self._session
        if session.chat is not None and not session.answering and not session.asking:
            with suppress(RuntimeError):  # the app has ended
                session.disk.submit(self._read, session.chat)

    def _read(self, chat: "Chat") -> None:
        """Tell what others wrote. Runs on the disk's thread."""
        if not chat.has_grown:
            return
        from localrun.chat.other_writers import Others, read_others

        what = read_others(chat)
        if what is None or what is self._told is Others.ASK:  # which is found again with every piece of the answer
            return
        self._told = what
        self._session.post(WrittenElsewhere(chat, what))
