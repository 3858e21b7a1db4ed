"""Short questions: one line of text, one of several."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localrun_tui.markdown.wrapping import wrap
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog
from localrun_tui.widgets.marked_options import MarkedOptions
from localrun_tui.widgets.model_path_field import ModelPathField

_DEAF = 0.7  # seconds
_SHARE, _AROUND = 0.96, 12  # of the screen that the box may take; cells around a text in it


class AskText(Dialog[str | None]):
    """One line of text; None when it was left with Escape. `about` explains it; `enter`: what Enter does."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="ask.cancel")]

    def __init__(
        self,
        question: str,
        value: str = "",
        about: str = "",
        enter: str = "accepts",
        is_secret: bool = False,
        is_path: bool = False,
    ) -> None:
        super().__init__()
        self.question, self.about, self.enter = question, about, enter
        if is_path:  # which begins so
            self.field: LineField = ModelPathField(value, select_on_focus=False, id="answer", compact=True)
        else:
            self.field = LineField(value, password=is_secret, id="answer", compact=True)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            if self.about:
                yield Static(say(self.about, "$foreground-muted"), id="text")
            yield self.field
        completes = "Tab completes, " if isinstance(self.field, ModelPathField) else ""
        yield KeyHint(f"{completes}Enter {self.enter}, Escape leaves it as it was")

    @on(Input.Submitted)
    def accept(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class AskOne(Dialog[str | None]):
    """One of several: rows of (key, title, explanation).

    A question that comes `unasked` is deaf at first: keys that are pressed then were meant for what was there before.
    """

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="ask.cancel")]

    def __init__(
        self,
        question: str,
        rows: Sequence[tuple[str, str, str]],
        text: str = "",
        current: str = "",
        unasked: bool = False,
        preview: Callable[[str], object] = lambda key: None,
    ) -> None:
        """`preview` gets the key of each row that one comes to."""
        super().__init__()
        self.add_class("-sized")
        self.set_class(not text, "-no-text")
        self.preview = preview
        self.question, self.rows, self.text, self.current, self.deaf = question, rows, text, current, unasked

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            if self.text:
                yield Static(Content("\n").join(say(line) for line in self.text.split("\n")), id="text")
            yield MarkedOptions(
                *(Option(self._row(*row), id=f"row-{n}") for n, row in enumerate(self.rows)), compact=True
            )
        yield KeyHint("↑↓ and Enter choose, Escape leaves it as it was")

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = next((n for n, row in enumerate(self.rows) if row[0] == self.current), 0)
        options.disabled = self.deaf
        options.focus()
        if self.deaf:
            self.call_after_refresh(self.set_timer, _DEAF, self._listen)

    def on_resize(self) -> None:
        """Wrap the rows for the width there is."""
        options = self.query_one(OptionList)
        for n, row in enumerate(self.rows):
            options.replace_option_prompt_at_index(n, self._row(*row))

    def _listen(self) -> None:
        self.deaf = False
        options = self.query_one(OptionList)
        options.disabled = False
        options.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.deaf

    @on(OptionList.OptionHighlighted)
    def _show(self, event: OptionList.OptionHighlighted) -> None:
        self.preview(self.rows[event.option_index][0])

    @on(OptionList.OptionSelected)
    def accept(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.rows[event.option_index][0])

    def _row(self, key: str, title: str, explanation: str) -> Content:
        mark = "● " if key == self.current else "  "
        room = max(int(_SHARE * self.app.size.width) - _AROUND, 10)
        about = wrap(say(explanation, "$foreground-muted"), room) if explanation else []
        return Content("\n  ").join([Content(mark) + say(title, "bold"), *about])
