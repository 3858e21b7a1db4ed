"""One question for yes or no, with the facts to decide it."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fact import Fact
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog


class ConfirmScreen(Dialog[bool]):
    """`facts` are (name, text) lines. Enter takes the button that has the focus: the harmless one for `danger`."""

    CSS_PATH = "confirm.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="confirm.yes"),
        Binding("escape,n", "answer(False)", "No", id="confirm.no"),
        Binding("left", "app.focus_previous", show=False, id="confirm.previous"),
        Binding("right", "app.focus_next", show=False, id="confirm.next"),
    ]

    def __init__(
        self, question: str, facts: Sequence[tuple[str, str]], yes: str, no: str = "No", danger: bool = False
    ) -> None:
        super().__init__()
        self.question = question
        self.facts = facts
        self.yes = yes
        self.no = no
        self.danger = danger

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            for name, text in self.facts:
                yield Fact(name, text)
            with Horizontal(id="buttons"):
                yield Button(f"{self.yes}  (y)", variant="error" if self.danger else "primary", id="yes", compact=True)
                yield Button(f"{self.no}  (n)", id="no", compact=True)
        yield KeyHint("y and n answer, ←→ and Enter choose, Escape is no")

    def on_mount(self) -> None:
        self.query_one("#no" if self.danger else "#yes").focus()

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")
