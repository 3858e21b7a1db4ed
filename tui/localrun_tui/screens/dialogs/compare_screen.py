"""Two versions of a message side by side, to choose one."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from localrun.chat.tree import Message
from localrun.chat.versions import version_title
from localrun_tui.screens.chat.message_document import MessageDocument
from localrun_tui.screens.dialogs.differences import with_marks
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog


def version_lines(message: Message, width: int) -> list[Content]:
    """Text of a version, in `width` cells."""
    document = MessageDocument(message, "")
    document.thinking_open = True
    return document.lines(width)[1:]


class CompareScreen(Dialog[str | None]):
    """Return the id of the version that was chosen: the one on the right, which ← and → change. `shown` is the one that
    the chat shows, on the left."""

    CSS_PATH = "compare_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "other(-1)", "Another", id="compare.back", key_display="←→"),
        Binding("right,l", "other(1)", show=False, id="compare.on"),
        Binding("up,k", "scroll(-1)", "Scroll", id="compare.up", key_display="↑↓"),
        Binding("down,j", "scroll(1)", show=False, id="compare.down"),
        Binding("pageup", "scroll(-10)", show=False, id="compare.page-up"),
        Binding("pagedown", "scroll(10)", show=False, id="compare.page-down"),
        Binding("enter", "choose", "Take the one on the right", id="compare.choose"),
        Binding("escape,q", "dismiss(None)", "Leave", id="compare.leave"),
    ]

    def __init__(self, versions: Sequence[Message], shown: int) -> None:
        super().__init__()
        self.versions, self.shown = versions, shown
        self.other = (shown + 1) % len(versions)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("Versions side by side; words that differ are underlined", id="question")
            with Horizontal(id="titles"):
                yield Static(id="left-title")
                yield Static(id="right-title")
            with VerticalScroll(id="both", can_focus=False), Horizontal(id="texts"):
                yield Static(id="left")
                yield Static(id="right")
        yield KeyHint("←→ another version, ↑↓ scroll, Enter: the one on the right, Escape leaves")

    def on_mount(self) -> None:
        self.call_after_refresh(self._show)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def action_other(self, step: int) -> None:
        """The next one that is not on the left."""
        n = len(self.versions)
        self.other = (self.other + step) % n
        if self.other == self.shown:
            self.other = (self.other + step) % n
        self._show()

    def action_scroll(self, lines: int) -> None:
        self.query_one("#both").scroll_relative(y=lines, animate=False)

    def action_choose(self) -> None:
        self.dismiss(self.versions[self.other].id)

    def _show(self) -> None:
        width = max(self.query_one("#left").size.width - 2, 10)
        indexes = self.shown, self.other
        texts = with_marks(*(version_lines(self.versions[index], width) for index in indexes))
        for side, index, lines in zip(("left", "right"), indexes, texts, strict=True):
            title = version_title(self.versions[index], index + 1, len(self.versions))
            self.query_one(f"#{side}-title", Static).update(say(title, "bold $text-accent"))
            self.query_one(f"#{side}", Static).update(Content("\n").join(lines))
