"""Pieces of an answer in order: text on its channels, and calls."""

from collections.abc import Callable
from typing import TypeAlias

from localrun.base.events import Channel, ToolCallDelta
from localrun.text.tool_calls.incoming import SPACE

Piece: TypeAlias = tuple[Channel, str] | ToolCallDelta
NewId: TypeAlias = Callable[[int, str], str]  # number and name of a call -> its id


class CallEvents:
    """Collects the pieces of an answer. White space between text and calls is dropped."""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._pieces: list[Piece] = []
        self._n_calls = 0
        self._space = ""  # of the answer, held back until text follows it
        self._follows_call = False  # no text of the answer has come since a call
        self._id = self._name = ""
        self._parts: list[str] = []  # of the arguments, not told yet
        self.is_in_call = False
        self.has_called = False  # in this section
        self.has_said = False  # something in the answer that is no white space

    def take(self) -> list[Piece]:
        """Pieces since the last call of `take`."""
        self._tell()
        pieces, self._pieces = self._pieces, []
        return pieces

    def say(self, channel: Channel, text: str) -> None:
        """Add text outside of calls."""
        if channel == "thinking":
            self._pieces.append((channel, text))
            return
        text = self._space + text
        shown = text.rstrip(SPACE)
        self._space = text[len(shown) :]
        if not shown:
            return
        if self._follows_call:
            shown = ("\n\n" if self.has_said else "") + shown.lstrip(SPACE)
        self._follows_call, self.has_said = False, True
        self._pieces.append((channel, shown))

    def begin_section(self) -> None:
        """Begin a section in which calls may follow."""
        self.has_called = False

    def begin(self, name: str, id: str = "") -> None:
        """Begin a call; white space before it is dropped."""
        self._space, self._follows_call = "", True
        self.is_in_call = self.has_called = True
        self._id, self._name = id or self._new_id(self._n_calls, name), name
        self._pieces.append(ToolCallDelta(self._n_calls, self._id, name, ""))
        self._n_calls += 1

    def arguments(self, text: str) -> None:
        """Add to the arguments of the open call."""
        self._parts.append(text)

    def end(self) -> None:
        """Complete the open call."""
        self._tell(is_complete=True)
        self.is_in_call = False

    def cut(self) -> None:
        """End the open call, incomplete."""
        self._tell()
        self.is_in_call = False

    def flush(self) -> None:
        """End the answer; white space at its end is text where nothing was called."""
        if self._space and not self._n_calls:
            self._pieces.append(("answer", self._space))
        self._space = ""

    def _tell(self, is_complete: bool = False) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        if text or is_complete:
            self._pieces.append(ToolCallDelta(self._n_calls - 1, self._id, self._name, text, is_complete))
