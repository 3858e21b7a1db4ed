"""Suggestions above the editor: commands behind a slash, files behind an @."""

import asyncio
import re
from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.fuzzy import FuzzySearch
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.dataclass import dataclass
from localrun.chat.commands import COMMANDS
from localrun.chat.files import FoundFile
from localrun_tui.state.files import look_at
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.marked_options import MarkedOptions

_SLASH = re.compile(r"/[a-z-]*\Z")
_LEAST = 3  # letters of a word in a description
_NAME_CELLS = max(len(command.name) for command in COMMANDS)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`value` is what it stands for: a command with its `argument`, which `ends` where nothing is to be typed behind
    it, or `files`, in whose place `replaces` stands in the text. Of a folder, `leads_to` is what to write for what is
    in it."""

    value: str
    row: Content
    ends: bool = True
    argument: str = ""
    replaces: str = ""
    leads_to: str = ""
    files: tuple[FoundFile, ...] = ()

    @property
    def typed(self) -> str:
        """The command with its argument, or up to where one is typed."""
        return f"{self.value} {self.argument}" if self.argument or not self.ends else self.value

    @property
    def is_last(self) -> bool:
        """Whether nothing can be written that leads further: a note, or files that are no folder."""
        return not self.value or (bool(self.files) and not self.leads_to)

    def is_written(self, text: str) -> bool:
        """Whether it stands in the editor already."""
        return self.replaces == self.leads_to if self.leads_to else text == self.typed


def suggested_commands(text: str) -> list[Suggestion]:
    """Commands whose names have a text, else those that are described with it; none unless it is one word behind a
    slash."""
    if not _SLASH.match(text):
        return []
    wanted, search = text[1:], FuzzySearch()
    known = [command for command in COMMANDS if "app" in command.faces]
    if wanted:
        scores = {command.name: search.match(wanted, command.name[1:])[0] for command in known}
        named = sorted((one for one in known if scores[one.name]), key=lambda one: -scores[one.name])
        named.sort(key=lambda one: not one.name.startswith(text))
        known = named or [one for one in known if describes(f"{one.title} {one.help}", wanted)]
    rows = [
        Content.assemble(
            (f"{one.name:<{_NAME_CELLS}}  ", "bold"),
            (f"{one.title}: {one.help}", "$foreground-muted"),
            (f"  {one.arguments}" if one.arguments else "", "$foreground-muted"),
        )
        for one in known
    ]
    return [Suggestion(one.name, row, not one.needs_arguments) for one, row in zip(known, rows, strict=True)]


def describes(text: str, wanted: str) -> bool:
    """Whether a word of a description begins so."""
    return len(wanted) >= _LEAST and re.search(rf"\b{re.escape(wanted)}", text, re.I) is not None


class SuggestionMenu(Horizontal):
    """A list, and beside it a look at what is highlighted. It never has the focus: the editor moves it."""

    def __init__(self) -> None:
        self.list = MarkedOptions(compact=True, id="suggestions-list")
        self.list.can_focus = False
        super().__init__(self.list, Static(id="suggestions-look", markup=False), id="suggestions")
        self.shown: list[Suggestion] = []

    def compose(self) -> ComposeResult:
        yield from ()

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose: a note alone takes no key from the editor."""
        return any(one.value for one in self.shown)

    @property
    def chosen(self) -> Suggestion | None:
        at = self.list.highlighted
        return self.shown[at] if at is not None and at < len(self.shown) else None

    def show(self, suggestions: Sequence[Suggestion]) -> None:
        """Offer these, the first of them highlighted; none closes the menu."""
        if list(suggestions) == self.shown:
            return
        self.shown = list(suggestions)
        self.list.clear_options()
        self.list.add_options([Option(one.row) for one in self.shown])
        self.list.highlighted = 0 if self.shown else None
        self._look("")
        self.display = bool(self.shown)

    def move(self, step: int) -> None:
        if self.shown:
            self.list.highlighted = ((self.list.highlighted or 0) + step) % len(self.shown)

    @on(OptionList.OptionHighlighted)
    async def _look_at_files(self) -> None:
        chosen = self.chosen
        if chosen is not None and chosen.files:
            text = await asyncio.to_thread(look_at, chosen.files)
            if self.chosen is chosen:
                self._look(text)

    def _look(self, text: str) -> None:
        """Show how what is highlighted begins."""
        look = self.query_one("#suggestions-look", Static)
        look.update(Content("\n").join(say(line) for line in text.splitlines()))
        look.display = bool(text)
