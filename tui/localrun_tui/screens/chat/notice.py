"""A line above the composer for the latest error or note."""

from collections.abc import Callable

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from localrun.base.errors import LocalrunError
from localrun.base.options import in_app
from localrun.base.sanitize import clean
from localrun_tui.markdown.wrapping import wrap

_MARKS = ("✕ ", "⚠ ", "  ")  # what a line may begin with; what is wrapped goes on behind it


class Notice(Static):
    """Hidden while empty. `chat` is the current one."""

    def __init__(self, chat: Callable[[], object]) -> None:
        super().__init__("", id="notice", markup=False)
        self._chat, self._said_in = chat, chat()
        self._is_of_load = self._is_of_reading = False

    def say_of_reading(self, text: str) -> None:
        """Show how far a file is read; empty at its end."""
        if text or self._is_of_reading:
            self.say(text)
            self._is_of_reading = bool(text)

    def say_of_load(self, text: str) -> None:
        """Show a notice that holds until the load has ended."""
        self.say(text)
        self._is_of_load = True

    def end_of_load(self) -> None:
        if self._is_of_load:
            self.clear()

    def leave_chat(self) -> None:
        """Another chat is shown: what was said of the one before does not concern it, but what was since then does."""
        if not self._is_of_load and self._said_in is not self._chat():
            self.clear()

    def say(self, text: str) -> None:
        """Show a text; it is made safe first, as it may quote foreign names."""
        self._is_of_load = self._is_of_reading = False
        self._said_in = self._chat()
        self.update(in_app(clean(text)))
        self.display = bool(text)

    def say_error(self, error: LocalrunError) -> None:
        """Show an error, and what to try."""
        self.say(f"✕ {error.message}" + (f"\n  {error.hint}" if error.hint else ""))

    def clear(self) -> None:
        self.update("")
        self.display = False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        shown = []
        for line in str(self.content).split("\n"):
            mark = line[:2] if line.startswith(_MARKS) else ""
            wrapped = wrap(Content(line[len(mark) :]), max(width - len(mark), 1))
            shown += [Content(mark if number == 0 else " " * len(mark)) + one for number, one in enumerate(wrapped)]
        return shown
