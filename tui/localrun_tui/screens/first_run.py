"""The first screen of the first run: what this machine can run, and the first steps. Downloads nothing unasked."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.errors import LocalrunError
from localrun.base.machine import memory
from localrun.base.processors import usual_threads
from localrun.base.units import gib
from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun_tui.screens.downloads.downloads import downloads_of
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fact import Fact, lines
from localrun_tui.widgets.fields import pasted
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.marked_options import MarkedOptions

if TYPE_CHECKING:
    from localrun.hub.catalogue_rows import CatalogueRow

FirstStep: TypeAlias = "CatalogueRow | Literal['builtin', 'models', 'downloads'] | None"
_ANSWERS: tuple[tuple[FirstStep, str, str], ...] = (
    ("builtin", "Start now", "with the small model that came along; offline, nothing to wait for"),
    ("models", "Choose a model", "see what fits; nothing is downloaded before you say so"),
    (None, "Look around first", "without a model; Ctrl+O chooses one later"),
)
_MUTED = "$foreground-muted"


class FirstRunScreen(Page[FirstStep]):
    """Dismisses with the row of the catalogue to get, "builtin", "models", None, or "downloads" where an earlier run
    has not finished one. Who types begins with the model that is there: `write` takes what is typed and pasted."""

    CSS_PATH = "first_run.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "later", "Look around", id="first.later"),
    ]

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write
        self._ways: list[tuple[FirstStep, str, str]] = list(_ANSWERS)
        self._shown: list[FirstStep] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Static("Welcome to localrun", id="title")
            yield Static("Language models that run on this machine: what you write stays here.", id="what")
            yield Fact("This machine", _machine())
            yield Fact("Built in", read_catalogue()[BUILTIN]["note"])
            yield Fact("★ Recommended", "looking at what fits this machine…", id="advice")
            yield _Ways(markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._show()
        downloads = downloads_of(self)
        downloads.changed.subscribe(self, self._offer_to_go_on)
        downloads.look_for_unfinished()
        self._offer_to_go_on(downloads)
        self.call_after_refresh(run_in_background, self, _find_first, self._advise, self._cannot_advise)

    def _offer_to_go_on(self, downloads: Downloads) -> None:
        """Offer to go on with an unfinished download before all else."""
        left = [one for one in downloads.all() if one.state == "unfinished"]
        if not left or any(answer == "downloads" for answer, _, _ in self._ways):
            return
        first, more = left[0], f" and {len(left) - 1} more" if len(left) > 1 else ""
        title = f"Go on with {first.short_name} {first.precision}{more}"
        self._ways.insert(0, ("downloads", title, f"{gib(first.done)} of {gib(first.total)} have arrived, and stay"))
        self._show()

    def _advise(self, row: "CatalogueRow | None") -> None:
        self.query_one("#advice", Fact).tell("★ Recommended" if row else "", _advice(row))
        if row is not None and row.best is not None:
            begun = any(answer == "downloads" for answer, _, _ in self._ways)
            text = f"≈{gib(row.best.file_bytes)} to download; the small model answers until it is there"
            self._ways.insert(int(begun), (row, f"Get {row.entry['title']}", text))
            self._show()

    def _show(self) -> None:
        """List the first steps. The highlighted one stays: Enter may be on its way to it."""
        ways = self.query_one(OptionList)
        at = self._shown[ways.highlighted or 0] if self._shown else self._ways[0][0]
        ways.set_options([_way(title, text) for _, title, text in self._ways])
        self._shown = [answer for answer, _, _ in self._ways]
        ways.highlighted = self._shown.index(at)

    def _cannot_advise(self, error: LocalrunError) -> None:
        self.query_one("#advice", Fact).tell("", say(error.message, _MUTED))

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index])

    def action_later(self) -> None:
        self.dismiss(None)

    def on_key(self, event: Key) -> None:
        if event.is_printable and event.character:
            self._begin_with(event.character)

    def on_paste(self, event: Paste) -> None:
        self._begin_with(pasted(event.text))

    def _begin_with(self, text: str) -> None:
        self._write(text)
        self.dismiss("builtin")


def _way(title: str, text: str) -> Option:
    return Option(say(title, "bold") + Content("\n") + say(f"  {text}", _MUTED))


class _Ways(MarkedOptions):
    """The ways to begin; the keys are named below, since they are new to the user."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor_up", "Move", id="first.move", key_display="↑↓"),
        Binding("enter", "select", "Choose", id="first.choose"),
    ]


def _find_first(task: object) -> "CatalogueRow | None":
    """Find a first model. Its imports stand here: they would hold up the first frame."""
    from localrun.backends.registry import usual_memory
    from localrun.hub.catalogue_rows import catalogue_rows, first_model

    now = usual_memory()
    return first_model(catalogue_rows(now.available, []), now.total)


def _machine() -> str:
    now, cores = memory(), usual_threads()
    return f"{gib(now.total)} of memory, {gib(now.available)} of it free; {cores} core{'s' if cores > 1 else ''}"


def _advice(row: "CatalogueRow | None") -> Content:
    """The model to begin with, and why."""
    if row is None or row.best is None:
        little = "No model of the catalogue fits the free memory now: close programs, or start with the one inside."
        return say(little, "$text-warning")
    from localrun_tui.screens.models.model_rows import size_of, sizes, speed

    best, entry = row.best, row.entry
    why = f"As {best.precision}: room for {best.max_ctx:,} tokens, {speed(best)}; {sizes(best)}"
    title = say(entry["title"], "bold") + say(f"  {size_of(row.n_params)} parameters, licence {entry['licence']}")
    return lines(title, say(entry["note"]), say(why, _MUTED))
