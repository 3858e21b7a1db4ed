"""Explain: how fast a model of any size would be here and what it would take, followed as one turns knobs."""

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.foretell.times import Times
from localrun.diagnose.foretell.topics import FORETOLD
from localrun.diagnose.foretell.what_if import WhatIf
from localrun_tui.screens.explain.drawing import MUTED, lesson_content, memory_line, time_line
from localrun_tui.screens.explain.here import Here, read_here
from localrun_tui.screens.explain.knobs import BY_FIELD, KNOBS, Knob, of_size, share_of_contexts, turned
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.toast import toast_error

_WIDEST = 110  # columns of a lesson: longer lines are hard to read
_SLIDER = 16  # cells


class Chip(Static):
    """A knob: its key, what it turns, and how it is set. A click turns it, too."""

    def __init__(self, knob: Knob) -> None:
        super().__init__(id=knob.field, classes="chip")
        self.knob = knob

    def show(self, what: WhatIf) -> None:
        keys = "←→" if self.knob.field == "ctx" else self.knob.key
        slider = Content("")
        if self.knob.field == "ctx":
            at = round(share_of_contexts(what) * (_SLIDER - 1))
            slider = Content.assemble(
                " ", ("━" * at, "$primary"), ("●", "bold $primary"), ("─" * (_SLIDER - 1 - at), "$foreground 25%")
            )
        name = Content.assemble((f"{keys} ", "$footer-key-foreground"), (f"{self.knob.title} ", MUTED))
        self.update(name + say(self.knob.said(what), "bold") + slider)

    async def on_click(self, event: events.Click) -> None:
        await self.screen.run_action(f"turn('{self.knob.field}', {-1 if event.shift else 1})")


def _bindings() -> list[BindingType]:
    keys: list[BindingType] = []
    for knob in KNOBS:
        if knob.field != "ctx":
            keys.append(Binding(knob.key, f"turn('{knob.field}', 1)", knob.title, False, id=f"explain.{knob.field}"))
            back = f"turn('{knob.field}', -1)"
            keys.append(Binding(knob.key.upper(), back, show=False, id=f"explain.{knob.field}-back"))
    return keys


class ExplainScreen(Screen[None]):
    """`held` tells the bytes that the loaded model would leave to another."""

    CSS_PATH = "explain_screen.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", id="explain.back"),
        Binding("left", "turn('ctx', -1)", "Context", id="explain.shorter", key_display="←→", priority=True),
        Binding("right", "turn('ctx', 1)", "Longer context", show=False, id="explain.longer", priority=True),
        Binding("pageup", "scroll(-1)", "Scroll", id="explain.page-up", key_display="Pg↑↓", priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, id="explain.page-down", priority=True),
        *_bindings(),
    ]

    def __init__(self, info: ModelInfo | None, held: Callable[[], int], topic: str = "") -> None:
        super().__init__()
        self._info, self._held, self._first = info, held, topic
        self.what = WhatIf()
        self.here: Here | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Explain", id="title")
            yield Static("", id="model")
        for row in (KNOBS[:4], KNOBS[4:]):
            with Horizontal(classes="knobs"):
                for knob in row:
                    yield Chip(knob)
        yield Static("", id="memory")
        yield Static("", id="time")
        with Horizontal(id="body"):
            yield OptionList(*(Option(f"  {words.name}", name) for name, words in WORDS.items()), id="topics")
            with VerticalScroll(id="lesson", can_focus=False):
                yield Static("", id="drawing")
        yield KeyBar()

    def on_mount(self) -> None:
        topics = self.query_one(OptionList)
        topics.highlighted = [*WORDS].index(self._first) if self._first in WORDS else 0
        topics.focus()
        self._draw()
        run_in_background(self, lambda task: read_here(self._info, self._held), self._ready, self._failed)

    def _ready(self, here: Here) -> None:
        self.here = here
        if here.loaded is not None:
            self.what = of_size(self.what, here.loaded)
        self._draw()

    def _failed(self, error: LocalrunError) -> None:
        toast_error(self, error)

    @property
    def topic(self) -> str:
        return [*WORDS][self.query_one(OptionList).highlighted or 0]

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @on(OptionList.OptionHighlighted)
    def _other_topic(self, event: OptionList.OptionHighlighted) -> None:
        for index, words in enumerate(WORDS.values()):
            mark = "▸" if index == event.option_index else " "
            event.option_list.replace_option_prompt_at_index(index, f"{mark} {words.name}")
        self.query_one("#lesson").scroll_home(animate=False)
        self._draw()

    def action_turn(self, field: str, by: int) -> None:
        self.what = turned(self.what, BY_FIELD[field], by, self.here.loaded if self.here else None)
        self._draw()

    def action_scroll(self, pages: int) -> None:
        lesson = self.query_one("#lesson")
        lesson.scroll_relative(y=pages * max(lesson.size.height - 2, 1), animate=False)

    def _draw(self) -> None:
        for chip in self.query(Chip):
            chip.show(self.what)
        size = self.what.size
        self.query_one("#model", Static).update(say(f"{size.name} here, by formula: as {size.of}", MUTED))
        if self.here is None:
            self.query_one("#time", Static).update(say("Looking at what this machine can do…", MUTED))
            return
        times = Times(self.what, self.here.rates, self.here.free)
        self.query_one("#memory", Static).update(memory_line(times))
        self.query_one("#time", Static).update(time_line(times))
        width = min(max(self.query_one("#lesson").scrollable_content_region.width - 1, 40), _WIDEST)
        self.query_one("#drawing", Static).update(lesson_content(FORETOLD[self.topic](times), width))
