"""The model of a plain chat, which can be changed during the chat."""

from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import LocalrunError, UsageError
from localrun.chat.journal import Chat
from localrun.cli.chats import held_as, open_for
from localrun.cli.groups import EngineFlags
from localrun.client.choice import ModelChoice, named
from localrun.hub.disk.stored import StoredModel

PROGRAM = "localrun chat"


class LineModel(AbstractContextManager["LineModel"]):
    """The loaded model of a plain chat. Only one is in memory at a time, because two may not fit."""

    def __init__(self, choice: ModelChoice, flags: EngineFlags, chat: Chat) -> None:
        self._flags = flags
        self._choice = held_as(chat, choice, flags)
        self.client = open_for(chat, choice, flags, PROGRAM)

    def change(self, name: str, chat: Chat) -> None:
        """Load another model; the one before comes back where that fails.

        Raises NotFoundError before anything is unloaded.
        """
        self._load(named(name), chat)

    def adapt(self, adapters: tuple[AdapterChoice, ...], chat: Chat) -> None:
        """Load the model with other adapters; it comes back as it was where that fails.

        Raises UsageError for a model of a server.
        """
        if not isinstance(self._choice.stored, StoredModel):
            raise UsageError("the server chooses its own adapters", "use a model on this machine")
        self._load(replace(self._choice, adapters=adapters), chat)

    @property
    def adapters(self) -> tuple[AdapterChoice, ...]:
        """The adapters in use."""
        return self._choice.adapters or ()

    def _load(self, wanted: ModelChoice, chat: Chat) -> None:
        wanted = held_as(chat, wanted, self._flags)
        self.client.close()
        try:
            self.client = open_for(chat, wanted, self._flags, PROGRAM)
            self._choice = wanted
        except LocalrunError:
            self.client = open_for(chat, self._choice, self._flags, PROGRAM)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.client.close()
