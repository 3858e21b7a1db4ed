"""All keys, from the bindings themselves, so that the page is never wrong."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from localrun.chat.commands import commands_of

Group = tuple[str, Iterable[BindingType]]
_NAMES = {"ctrl+": "Ctrl+", "shift+": "Shift+", "alt+": "Alt+", "escape": "Esc", "slash": "/", "question_mark": "?"}
_NAMES |= {
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


class HelpScreen(ModalScreen[None]):
    """`groups` are titles with the bindings below them."""

    CSS_PATH = "help_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss", "Close", id="help.close")]

    def __init__(self, groups: Iterable[Group]) -> None:
        super().__init__()
        self.groups = groups

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box"):
            yield Static("Keys", id="question")
            for title, bindings in self.groups:
                yield Static(title, classes="label")
                yield Static(_lines(bindings))
            yield Static("Commands, typed in the editor", classes="label")
            yield Static(_commands())
            yield Static(
                "Every command is in the palette too: Ctrl+P. Text is selected with the mouse.", classes="label"
            )


def _lines(bindings: Iterable[BindingType]) -> Content:
    rows: dict[str, str] = {}
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            keys = rows.get(binding.description, "")
            rows[binding.description] = " ".join(filter(None, [keys, key_names(binding)]))
    return Content("\n").join(
        Content.assemble((f"  {_short(keys):<31}", "bold"), description) for description, keys in rows.items()
    )


def _commands() -> Content:
    rows = commands_of("app").values()
    return Content("\n").join(Content.assemble((f"  {one.usage:<31}", "bold"), one.title) for one in rows)


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
