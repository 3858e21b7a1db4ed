"""The model that answers in a plain chat, until another takes its place."""

from contextlib import AbstractContextManager
from types import TracebackType

from localrun.base.errors import LocalrunError
from localrun.chat.journal import Chat
from localrun.cli.chats import open_for
from localrun.cli.groups import EngineFlags
from localrun.client.choice import ModelChoice, named

PROGRAM = "localrun chat"


class LineModel(AbstractContextManager["LineModel"]):
    """One model at a time: two may not fit. `chat` remembers which answers in it."""

    def __init__(self, choice: ModelChoice, flags: EngineFlags, chat: Chat) -> None:
        self._flags = flags
        self._choice = choice
        self.client = open_for(chat, choice, flags, PROGRAM)

    def change(self, name: str, chat: Chat) -> None:
        """Load another model; where that fails, the one before comes back. NotFoundError before anything is done."""
        wanted = named(name)
        self.client.close()
        try:
            self.client = open_for(chat, wanted, self._flags, PROGRAM)
            self._choice = wanted
        except LocalrunError:
            self.client = open_for(chat, self._choice, self._flags, PROGRAM)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.client.close()
