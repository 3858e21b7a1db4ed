"""What the session tells the screens."""

from typing import TYPE_CHECKING

from textual.message import Message

from localrun.base.events import ModelInfo

if TYPE_CHECKING:
    from localrun_tui.state.choice import Choice
    from localrun_tui.state.turn import Turn


class LoadBegan(Message):
    """A model is being loaded."""

    def __init__(self, choice: "Choice") -> None:
        super().__init__()
        self.choice = choice


class LoadProgressed(Message):
    """`done` of `total` bytes of the model are in memory."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__()
        self.done = done
        self.total = total

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, LoadProgressed)


class LoadEnded(Message):
    """The model is ready; `info` is None when it could not be loaded, or was given up."""

    def __init__(self, info: ModelInfo | None) -> None:
        super().__init__()
        self.info = info


class ChatOpened(Message):
    """Another chat is the current one; it is shown `at` a message that was looked for."""

    def __init__(self, at: str | None = None) -> None:
        super().__init__()
        self.at = at


class ChatChanged(Message):
    """The current chat has another message, or another branch of it is shown, `at` the message that was chosen."""

    def __init__(self, at: str | None = None) -> None:
        super().__init__()
        self.at = at


class TurnBegan(Message):
    """An answer is on its way."""

    def __init__(self, turn: "Turn") -> None:
        super().__init__()
        self.turn = turn
