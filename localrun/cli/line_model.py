"""The model that answers in a plain chat, until another takes its place."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError
from localrun.chat.journal import Chat
from localrun.cli.chats import held_as
from localrun.cli.groups import LoadOptionFlags
from localrun.cli.session import open_client
from localrun.hub.resolve import resolve
from localrun.hub.stored import StoredModel

if TYPE_CHECKING:
    from localrun.client.local import LocalClient


class LineModel(AbstractContextManager["LineModel"]):
    """One model at a time: two may not fit. `chat` remembers which answers in it."""

    def __init__(self, stored: StoredModel, flags: LoadOptionFlags, chat: Chat) -> None:
        self._flags = flags
        self._stored = stored
        self.client = self._open(stored, chat)

    def change(self, name: str, chat: Chat) -> None:
        """Load another model; where that fails, the one before comes back. NotFoundError before anything is done."""
        wanted = resolve(name)
        self.client.close()
        try:
            self.client = self._open(wanted, chat)
            self._stored = wanted
        except LocalrunError:
            self.client = self._open(self._stored, chat)
            raise

    def _open(self, stored: StoredModel, chat: Chat) -> "LocalClient":
        return open_client(stored, held_as(chat, stored, self._flags), chat.id if chat.kept else "")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.client.close()
