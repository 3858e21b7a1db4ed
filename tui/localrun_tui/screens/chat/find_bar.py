"""A line above the editor to find words in the chat that is open."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message as TextualMessage
from textual.widgets import Input, Static

from localrun.base.dataclass import dataclass
from localrun_tui.widgets.fields import LineField


class FindBar(Horizontal):
    """Hidden while nothing is searched."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,up", "go(-1)", "Earlier", id="find.earlier", key_display="↑"),
        Binding("down", "go(1)", "Later", id="find.later", key_display="↓"),
        Binding("escape", "leave", "Done", id="find.leave"),
    ]

    @dataclass
    class Look(TextualMessage):
        """Mark the words, and go to the last message that has them all."""

        words: str

    @dataclass
    class Go(TextualMessage):
        """Go to the message `step` further among those found."""

        step: int

    class Leave(TextualMessage):
        """End the search."""

    def __init__(self) -> None:
        super().__init__(id="find")
        self.box = LineField(placeholder="Find in this chat", id="find-words", compact=True)

    def compose(self) -> ComposeResult:
        yield self.box
        yield Static("", id="find-count", markup=False)

    def open(self) -> None:
        self.display = True
        self.screen.set_focus(self.box)  # at once: what is typed next goes there

    def tell(self, number: int, n_found: int) -> None:
        """Number of the message in sight among those found, from 1 on."""
        words = f"{number} of {n_found}" if n_found else "not found in this chat" if self.box.value.strip() else ""
        self.query_one("#find-count", Static).update(words)

    def action_go(self, step: int) -> None:
        self.post_message(self.Go(step))

    def action_leave(self) -> None:
        self.display = False
        self.box.value = ""
        self.post_message(self.Leave())

    @on(Input.Changed)
    def _look(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.post_message(self.Look(event.value))
