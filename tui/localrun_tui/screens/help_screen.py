"""All keys and commands by task, from the bindings themselves, so that the page is never wrong."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from localrun_tui.widgets.fact_list import FactList, FactSection
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog

KeyGroup = tuple[str, Iterable[BindingType]]
_KEYS_WIDTH = 15  # cells of the column of keys
_NAMES = {"ctrl+": "Ctrl+", "shift+": "Shift+", "alt+": "Alt+", "escape": "Esc", "slash": "/", "question_mark": "?"}
_NAMES |= {
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "end": "End",
    "pageup": "Page↑",
    "pagedown": "Page↓",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "enter": "Enter",
    "delete": "Del",
    "backspace": "Bksp",
}


class HelpScreen(Dialog[None]):
    """`groups` are titles with the bindings below them, `commands` what may be typed, with what it does."""

    CSS_PATH = "help_screen.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,question_mark,q", "dismiss", "Close", id="help.close")]

    def __init__(self, groups: Iterable[KeyGroup], commands: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._sections = [(title, rows_of(bindings)) for title, bindings in groups]
        self._sections.append(("Commands, typed as a message", list(commands)))

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Static("Keys and commands", id="question")
            with Horizontal(id="columns"):
                for column in in_two_columns(self._sections):
                    yield Static(FactList(column, _KEYS_WIDTH), classes="column")
            yield Static("Ctrl+P finds all of these by name. Text is selected with the mouse.", classes="label")
        yield KeyHint("↑↓ Page↑↓ scroll · Escape leaves")


def in_two_columns(sections: Sequence[FactSection]) -> tuple[list[FactSection], list[FactSection]]:
    """Cut where the longer of the two columns is shortest; the order is kept."""
    heights = [len(rows) + 2 for _, rows in sections]
    cut = min(range(len(sections) + 1), key=lambda n: max(sum(heights[:n]), sum(heights[n:])))
    return list(sections[:cut]), list(sections[cut:])


def rows_of(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Keys and what they do; several that do the same are one row."""
    rows: dict[str, str] = {}
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            keys = rows.get(binding.description, "")
            rows[binding.description] = " ".join(filter(None, [keys, key_names(binding)]))
    return [(_short(keys), description) for description, keys in rows.items()]


def _short(keys: str) -> str:
    """Nine digits are a range."""
    return keys.replace("1 2 3 4 5 6 7 8 9", "1 … 9")


def _is_letter(key: str, plus: str) -> bool:
    """Whether it is written as a capital: Ctrl+O, F1, but a plain c."""
    return (len(key) == 1 and bool(plus)) or (key[:1] == "f" and key[1:].isdigit())


def key_names(binding: Binding) -> str:
    """The keys of a binding as people write them."""
    names = []
    for key in binding.key.split(","):
        for name, shown in _NAMES.items():
            key = key.replace(name, shown) if name.endswith("+") or key.rpartition("+")[2] == name else key
        head, plus, last = key.rpartition("+")
        names.append(f"{head}{plus}{last.upper() if _is_letter(last, plus) else last}")
    return " ".join(names)
