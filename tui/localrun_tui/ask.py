"""Short questions: one line of text, one of several, a text file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import DirectoryTree, Input, OptionList, Static
from textual.widgets.option_list import Option

from .columns import say
from .fields import LineField

_DEAF = 0.7  # seconds


class AskText(ModalScreen[str | None]):
    """One line of text; None when it was left with Escape."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="ask.cancel")]

    def __init__(self, question: str, value: str = "", hint: str = "Enter accepts, Escape leaves it as it was") -> None:
        super().__init__()
        self.question, self.value, self.hint = question, value, hint

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            yield LineField(self.value, id="answer", compact=True)
            yield Static(say(self.hint), id="hint")

    @on(Input.Submitted)
    def accept(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class AskOne(ModalScreen[str | None]):
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
    ) -> None:
        super().__init__()
        self.question, self.rows, self.text, self.current, self.deaf = question, rows, text, current, unasked

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            if self.text:
                yield Static(Content("\n").join(say(line) for line in self.text.split("\n")), id="text")
            yield OptionList(*(Option(self._row(*row), id=f"row-{n}") for n, row in enumerate(self.rows)), compact=True)
            yield Static("↑↓ and Enter choose, Escape leaves it as it was", id="hint")

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = next((n for n, row in enumerate(self.rows) if row[0] == self.current), 0)
        options.disabled = self.deaf
        options.focus()
        if self.deaf:
            self.call_after_refresh(self.set_timer, _DEAF, self._listen)

    def _listen(self) -> None:
        self.deaf = False
        options = self.query_one(OptionList)
        options.disabled = False
        options.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.deaf

    @on(OptionList.OptionSelected)
    def accept(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.rows[event.option_index][0])

    def _row(self, key: str, title: str, explanation: str) -> Content:
        mark = "● " if key == self.current else "  "
        first = Content(mark) + say(title, "bold")
        return first + Content("\n  ") + say(explanation, "$foreground-muted") if explanation else first


class PathSuggester(Suggester):
    """Completes a path from what is in its folder."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        folder, _, begun = value.rpartition("/")
        try:
            names = sorted(
                path.name for path in Path(f"{folder}/" if folder or value[:1] == "/" else ".").expanduser().iterdir()
            )
        except (OSError, ValueError, RuntimeError):
            return None
        name = next((name for name in names if begun and name.startswith(begun) and name != begun), None)
        return None if name is None or not name.isprintable() else value[: len(value) - len(begun)] + name


class SafeTree(DirectoryTree):
    """A folder's files without hidden ones; names are foreign text."""

    ICON_NODE, ICON_NODE_EXPANDED, ICON_FILE = "▸ ", "▾ ", "  "

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        return [path for path in paths if not path.name.startswith(".")]

    def render_label(self, node, base_style, style):  # type: ignore[no-untyped-def]
        label = super().render_label(node, base_style, style)
        label.plain = say(label.plain).plain
        return label


class AskFile(ModalScreen[Path | None]):
    """A file: typed, with completion, or found in the tree below."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="ask.cancel")]

    def __init__(self, question: str, root: Path) -> None:
        super().__init__()
        self.question, self.root = question, root

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self.question), id="question")
            yield LineField(placeholder="path of a text file", suggester=PathSuggester(), id="answer", compact=True)
            yield SafeTree(self.root, id="tree")
            yield Static("→ completes, Enter attaches, Tab goes to the files, Escape leaves", id="hint")

    @on(Input.Submitted)
    def accept(self, event: Input.Submitted) -> None:
        typed = event.value.strip().strip("'\"")
        self.dismiss(Path(typed).expanduser() if typed else None)

    @on(DirectoryTree.FileSelected)
    def accept_file(self, event: DirectoryTree.FileSelected) -> None:
        self.dismiss(event.path)
