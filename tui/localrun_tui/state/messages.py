"""Messages from the session to the screens."""

from typing import TYPE_CHECKING

from textual.message import Message

from localrun.base.dataclass import dataclass
from localrun.base.events import ModelInfo

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.chat.other_writers import Others
    from localrun.client.choice import ModelChoice
    from localrun_tui.state.pending_consent import PendingConsent
    from localrun_tui.state.turn import Turn


@dataclass
class LoadBegan(Message):
    """A model is being loaded; `instead_of` the one that comes back if that is given up. `for_chat`: it was held so."""

    choice: "ModelChoice"
    instead_of: "ModelChoice | None" = None
    for_chat: bool = False

    @property
    def words(self) -> str:
        """A note about it for the user; empty for a load that was asked for."""
        if self.instead_of is None or not self.for_chat:
            return ""
        both = (self.choice, self.instead_of)
        wanted, present = (f"{one.stored.name} {one.precision}".strip() for one in both)
        if wanted == present:
            return (
                "This chat was held with another context or KV cache, which is loaded now.  Esc stays with the present"
            )
        return f"This chat was held with {wanted}, which is loaded now.  Esc stays with {present}"


@dataclass
class LoadProgressed(Message):
    """`done` of `total` bytes of the model are in memory."""

    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, LoadProgressed)


@dataclass
class LoadEnded(Message):
    """The model is ready; `info` is None when it could not be loaded, or was given up."""

    info: ModelInfo | None


@dataclass
class ModelWanted(Message):
    """A message was sent and there is no model: it is answered once one is loaded."""


@dataclass
class ModelGone(Message):
    """The model that the current chat was held with is not there any more; the `present` one answers."""

    name: str
    present: str

    @property
    def words(self) -> str:
        return f"{self.name}, with which this chat was held, is not here any more: {self.present} answers."


class Sending(Message):
    """A message is being put on disk, which takes a moment where it is long; then it is shown and answered."""


@dataclass
class ChatOpened(Message):
    """Another chat is the current one, which may be new; it is shown `at` a message that was looked for."""

    at: str | None = None
    new: bool = False


@dataclass
class ChatChanged(Message):
    """The current chat has another message, or another branch of it is shown, `at` the message that was chosen."""

    at: str | None = None


@dataclass
class WrittenElsewhere(Message):
    """Another program wrote in `chat`."""

    chat: "Chat"
    what: "Others"


@dataclass
class ToolAsked(Message):
    """A tool waits until the user says whether it may run."""

    pending: "PendingConsent"


@dataclass
class TurnBegan(Message):
    """An answer is on its way."""

    turn: "Turn"
