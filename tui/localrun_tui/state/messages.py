"""What the session tells the screens."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from localrun.base.events import ModelInfo

if TYPE_CHECKING:
    from localrun_tui.state.choice import ModelChoice
    from localrun_tui.state.turn import Turn


@dataclass
class LoadBegan(Message):
    """A model is being loaded."""

    choice: "ModelChoice"


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
class ChatOpened(Message):
    """Another chat is the current one; it is shown `at` a message that was looked for."""

    at: str | None = None


@dataclass
class ChatChanged(Message):
    """The current chat has another message, or another branch of it is shown, `at` the message that was chosen."""

    at: str | None = None


@dataclass
class TurnBegan(Message):
    """An answer is on its way."""

    turn: "Turn"
