"""Explain: speed and memory of a model of any size on this machine, by its parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message as TextualMessage
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.times import Times
from localrun.diagnose.predict.topics import PREDICTED
from localrun.diagnose.predict.what_if import WhatIf
from localrun.hub.catalogue import shown_name
from localrun_tui.screens.explain.drawing import MUTED, memory_line, report_content, time_line
from localrun_tui.screens.explain.machine_state import MachineState, read_machine_state
from localrun_tui.screens.explain.measurement import Measurement, MeasureTopic
from localrun_tui.screens.explain.parameter_label import ParameterLabel
from localrun_tui.screens.explain.parameters import BY_FIELD, CODECS, PARAMETERS, near, of_size, turned
from localrun_tui.screens.models.model_rows import FLOOR_WORDS
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.marked_options import MarkedOptions
from localrun_tui.widgets.toast import toast_error

_WIDEST = 110  # columns of a report: longer lines are hard to read
BESIDE = 160  # columns from which on measured figures are beside predicted ones
TICK_SECONDS = 0.5
SETTLED_SECONDS = 0.1  # until new lines have their places


def _bindings() -> list[BindingType]:
    keys: list[BindingType] = []
    for one in PARAMETERS:
        if one.field != "ctx":
            keys.append(Binding(one.key, f"turn('{one.field}', 1)", one.title, False, id=f"explain.{one.field}"))
            back = f"turn('{one.field}', -1)"
            keys.append(Binding(one.key.upper(), back, show=False, id=f"explain.{one.field}-back"))
    return keys


class _Report(VerticalScroll, can_focus=False):
    """Numbers and words of a topic, in lines for its width."""

    class Resized(TextualMessage):
        """Another width, which lines are made for."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class ExplainScreen(Page[None]):
    """`held`: bytes that the loaded model would free for another; `explain`: measures a topic on it."""

    CSS_PATH = "explain_screen.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (80, "-narrow"), (100, "-wide"), (BESIDE, "-widest")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", id="explain.back"),
        Binding("m", "measure", "Measure here", id="explain.measure"),
        Binding("left", "turn('ctx', -1)", "Context", id="explain.shorter", key_display="←→", priority=True),
        Binding("right", "turn('ctx', 1)", "Longer context", show=False, id="explain.longer", priority=True),
        Binding("pageup", "scroll(-1)", "Scroll", id="explain.page-up", key_display="Pg↑↓", priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, id="explain.page-down", priority=True),
        *_bindings(),
    ]

    def __init__(
        self, info: ModelInfo | None, held: Callable[[], int], explain: MeasureTopic | None = None, topic: str = ""
    ) -> None:
        super().__init__()
        self._info, self._held, self._explain, self._first = info, held, explain, topic
        self._measuring: Measurement | None = None
        self._measured: dict[str, TopicReport] = {}
        self.what = WhatIf()
        self.here: MachineState | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Explain", id="title")
            yield Static("", id="model")
        for row in (PARAMETERS[:4], PARAMETERS[4:]):
            with Horizontal(classes="parameters"):
                for parameter in row:
                    yield ParameterLabel(parameter)
        yield Static("", id="memory")
        yield Static("", id="time")
        with Horizontal(id="body"):
            yield MarkedOptions(*(Option(f" {words.name}", name) for name, words in WORDS.items()), id="topics")
            with _Report(id="report"), Container(id="both"):
                yield Static("", id="drawing")
                yield Static("", id="measured")
        yield KeyBar()

    def on_mount(self) -> None:
        topics = self.query_one(OptionList)
        topics.highlighted = [*WORDS].index(self._first) if self._first in WORDS else 0
        topics.focus()
        self._draw()
        run_in_background(self, lambda task: read_machine_state(self._info, self._held), self._ready, self._failed)

    def _ready(self, here: MachineState) -> None:
        self.here = here
        if here.loaded is not None:
            ctx = near(self._info.ctx) if self._info else self.what.ctx
            codec = self._info.kv_codec if self._info and self._info.kv_codec in CODECS else self.what.codec
            self.what = replace(of_size(self.what, here.loaded), ctx=ctx, codec=codec)
        self._draw()

    def _failed(self, error: LocalrunError) -> None:
        toast_error(self, error)

    @property
    def topic(self) -> str:
        return [*WORDS][self.query_one(OptionList).highlighted or 0]

    @on(_Report.Resized)
    def _fill(self) -> None:
        self._draw()

    @on(OptionList.OptionHighlighted)
    def _other_topic(self) -> None:
        self.query_one("#report").scroll_home(animate=False)
        self._draw()

    # ---- measuring

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "measure" or (self._explain is not None and self._measuring is None)

    def action_measure(self) -> None:
        """Measure the topic on the loaded model in the background."""
        explain, topic = self._explain, self.topic
        if explain is None or self._measuring is not None:
            return

        def done(report: TopicReport) -> None:
            self._measured[topic] = report
            self._end_measuring()
            if topic == self.topic and not self.has_class("-widest"):
                self.set_timer(SETTLED_SECONDS, self._show_measured)

        def failed(error: LocalrunError) -> None:
            self._end_measuring()
            toast_error(self, error)

        self._measuring = Measurement(self, explain, topic, done, failed)
        self._ticking = self.set_interval(TICK_SECONDS, self._draw)
        self.refresh_bindings()
        self._draw()

    def _end_measuring(self) -> None:
        self._measuring = None
        self._ticking.stop()
        self.refresh_bindings()
        self._draw()

    def _show_measured(self) -> None:
        self.query_one("#report").scroll_to_widget(self.query_one("#measured"), top=True, animate=False)

    def action_back(self) -> None:
        """First out of a measurement."""
        if self._measuring is None:
            self.dismiss()
        else:
            self._measuring.cancel()
            self._end_measuring()

    def on_unmount(self) -> None:
        if self._measuring is not None:
            self._measuring.cancel()

    # ---- parameters

    def action_turn(self, field: str, by: int) -> None:
        self.what = turned(self.what, BY_FIELD[field], by, self.here.loaded if self.here else None)
        self._draw()

    def action_scroll(self, pages: int) -> None:
        report = self.query_one("#report")
        report.scroll_relative(y=pages * max(report.size.height - 2, 1), animate=False)

    def _draw(self) -> None:
        for label in self.query(ParameterLabel):
            label.show(self.what)
        size = self.what.size
        is_floor = self.here is not None and not self.here.rates.idle
        source = f"{size.name} here" + ("" if is_floor else ", by formula") + ("" if size.loaded else f": as {size.of}")
        source += f"; {FLOOR_WORDS}" if is_floor else ""  # which has no room beside the other words
        if self._measuring is not None:
            source = self._measuring.words
        self.query_one("#model", Static).update(say(source, "$text-accent" if self._measuring else MUTED))
        if self.here is None:
            self.query_one("#time", Static).update(say("Looking at what this machine can do…", MUTED))
            return
        times = Times(self.what, self.here.rates, self.here.free)
        self.query_one("#memory", Static).update(memory_line(times, self.size.width - 2))
        self.query_one("#time", Static).update(time_line(times, self.size.width - 2))
        parts = 2 if self.has_class("-widest") else 1
        width = min(max(self.query_one("#report").scrollable_content_region.width // parts - 2, 40), _WIDEST)
        self.query_one("#drawing", Static).update(report_content(PREDICTED[self.topic](times), width))
        self.query_one("#measured", Static).update(self._measured_content(width))

    def _measured_content(self, width: int) -> Content:
        """The measured report of this topic, or how to measure it."""
        report, name = self._measured.get(self.topic), self._info.name if self._info else ""
        if report is None:
            return say(f"m measures this here, on {shown_name(name)}" if self._explain else "", MUTED)
        return report_content(report, width, f"Measured here: {shown_name(name)}", about=False)
