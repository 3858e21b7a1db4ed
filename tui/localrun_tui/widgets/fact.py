"""A name at the left and a text at the right, wrapped in its own column."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from localrun_tui.widgets.columns import say


class Fact(Horizontal):
    """Lines of `text` that are already Content keep their looks; a string is taken as foreign."""

    DEFAULT_CSS = """
    Fact {
        height: auto;
        & > .name { width: 14; padding-right: 1; color: $foreground-muted; }
        & > .text { width: 1fr; height: auto; }
    }
    """

    def __init__(self, name: str, text: Content | str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = name
        self._text = text if isinstance(text, Content) else lines(*(say(line) for line in text.split("\n")))

    def compose(self) -> ComposeResult:
        yield Static(say(self._title), classes="name")
        yield Static(self._text, classes="text")

    def tell(self, name: str, text: Content) -> None:
        """Something else."""
        self.query_one(".name", Static).update(say(name))
        self.query_one(".text", Static).update(text)


def lines(*some: Content) -> Content:
    """One below the other."""
    return Content("\n").join(some)
