"""A file that is too long for the model: a look into it, a part of it, or all of it, condensed or in parts."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static

from localrun.base.content import FilePart
from localrun.base.errors import LocalrunError, UsageError
from localrun.chat.long_text.condensed import error_lines
from localrun.chat.long_text.in_parts import ReadingPlan
from localrun.chat.long_text.part_reader import PartReader
from localrun.chat.long_text.reading_pace import ReadingPace
from localrun.chat.long_text.ways_to_read import ReadingWay
from localrun.client.interface import Cancellation
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.state.background import Task, run_in_background, tell
from localrun_tui.state.long_text import LongText
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog
from localrun_tui.widgets.marked_options import MarkedOptions
from localrun_tui.widgets.meters import bar

_LOOK_LINES = 400  # of a part, in the preview
_AT_REST = 0.3  # seconds without a key before a plan is made
_PARTS = "all; or -200 its end, 100-900 lines, or words to look for"
_QUESTION = "what do you want to know? Then you see what it takes"
_BAR = 20
_NAME, _AROUND = 11, 4  # cells of the name of a way, and around what is said of it


class _Found(NamedTuple):
    """The part as typed and its tokens, the ways to read it for the question, and parts that have words of this."""

    part: FilePart
    n_tokens: int = 0  # where there is no question
    ways: Sequence[ReadingWay] = ()
    parts: Sequence[tuple[str, int]] = ()


class ReadScreen(Dialog[FilePart | None]):
    """Return what goes along with the message: a part of the file, its kinds of lines, or the notes of reading it for a
    question."""

    CSS_PATH = "read_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave, or stop reading", id="read.leave"),
        Binding("ctrl+c", "stop", show=False, id="read.stop"),
        Binding("up", "choose(-1)", show=False, id="read.way-up"),
        Binding("down", "choose(1)", show=False, id="read.way-down"),
        Binding("pageup", "scroll(-1)", show=False, id="read.page-up"),
        Binding("pagedown", "scroll(1)", show=False, id="read.page-down"),
    ]

    def __init__(self, text: LongText, question: str = "", part: str = "") -> None:
        """`part` as it is typed."""
        super().__init__()
        self._text = text
        self.question = question  # as it stands in the dialog
        self.left_out = ""  # of the text or of the notes on it, in words, once it is read in parts
        self._stop: Cancellation | None = None  # of the reading under way
        self._typed = (part, question)  # as the fields stood when they were looked at, or will be
        self._pause: Timer | None = None  # after the last key
        self._looking: Task | None = None
        self._ways: Sequence[ReadingWay] = ()  # to read the part for the question, as both stand in the fields

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(say(self._text.size), id="question")
            with Horizontal(classes="row"):
                yield Static("Part", classes="name")
                yield LineField(self._typed[0], placeholder=_PARTS, id="part", compact=True)
            with VerticalScroll(id="look", can_focus=False):
                yield Static("", id="look-text", markup=False)
            with Horizontal(classes="row"):
                yield Static("Question", classes="name")
                yield LineField(self.question, placeholder=_QUESTION, id="asked", compact=True)
            yield MarkedOptions(id="ways", compact=True)
            yield Static("", id="cost")
        yield KeyHint()

    def on_mount(self) -> None:
        self.query_one("#ways").can_focus = False  # ↑↓ choose from the fields
        self.query_one("#asked" if self.question else "#part").focus()
        self.call_after_refresh(self._look)
        if self.question:  # what that takes is known later
            run_in_background(self, lambda task: self._text.part(self._typed[0]), self._show_text)

    # ---- a look, and the cost

    @on(Input.Changed)
    def _look_when_at_rest(self) -> None:
        if self._fields == self._typed:  # a field tells its first value, too
            return
        self._typed, self.question = self._fields, self._fields[1].strip()
        self._offer(())
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(_AT_REST, self._look)

    @on(events.DescendantFocus)
    def _name_keys(self) -> None:
        """Name those that do something here and now."""
        does = "Enter attaches what is typed · " if self.query_one("#part").has_focus else ""
        does = "↑↓ and Enter choose a way · " if not does and self._ways else does
        self.query_one(KeyHint).show(f"{does}Tab goes on · Page↑↓ scroll · Escape leaves")

    @property
    def _fields(self) -> tuple[str, str]:
        return self.query_one("#part", LineField).value, self.query_one("#asked", LineField).value

    def _look(self) -> None:
        """Show the part, and what reading it costs."""
        typed, question = self._fields
        text = self._text

        def work(task: Task) -> _Found:
            part = text.part(typed)
            if not question.strip():
                return _Found(part, text.n_tokens(part))
            return _Found(part, 0, text.ways(typed, question), [] if typed else text.found(question))

        if self._looking is not None:
            self._looking.cancel()
        if question.strip():
            self._cost(say("counting what it takes to read that…", "$foreground-muted"))
        self._looking = run_in_background(self, work, self._show, self._show_nothing)

    def _show(self, found: _Found) -> None:
        self._offer(found.ways)
        if not found.ways:
            self._show_text(found.part)
            self._cost(say(f"≈{found.n_tokens:,} tokens", "$text-accent"))
            return
        few = ", ".join(f"{part} {n:,} line{'' if n == 1 else 's'}" for part, n in found.parts)
        self._cost(say(f"or as Part, at once: {few}") if few else Content(""))

    def _offer(self, ways: Sequence[ReadingWay]) -> None:
        """List the ways to read it, each with its cost; the text of the first one is shown."""
        self._ways = ways
        options = self.query_one("#ways", MarkedOptions)
        options.set_options([_row(way, max(options.size.width - _AROUND, 10)) for way in ways])
        options.highlighted = 0 if ways else None
        self._name_keys()

    @on(OptionList.OptionHighlighted)
    def _look_at_way(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index < len(self._ways):
            self._show_text(self._ways[event.option_index].part)

    def _show_text(self, part: FilePart) -> None:
        """The beginning of a text; of a log's kinds of lines its errors first, which stand last for the model."""
        lines = part.text.split("\n", _LOOK_LINES)[:_LOOK_LINES]
        if errors := error_lines(part.text):
            lines = [*errors, "", *lines]
        self._show_lines([line[:400] for line in lines])

    def _show_lines(self, lines: Sequence[str]) -> None:
        self.query_one("#look-text", Static).update(Content("\n").join(map(say, lines)))
        self.query_one("#look").scroll_home(animate=False)

    def _show_nothing(self, error: LocalrunError) -> None:
        """Say why there is no such part, or no way to read it; look again once the model is there."""
        if self._text.waits:
            self.set_timer(_AT_REST, self._look)
        else:
            self._show_lines(())
        self._fail(error)

    def _fail(self, error: LocalrunError) -> None:
        self._cost(say(f"{error.message}: {error.hint}" if error.hint else error.message, "$text-error"))

    # ---- what it becomes

    @on(Input.Submitted, "#part")
    def _take_part(self) -> None:
        """Attach the part that is typed, or all that fits; what does not waits for a question."""
        typed, _ = self._fields

        def part_of_it(task: Task) -> FilePart | None:
            return None if not typed.strip() and self._text.is_long("") else self._text.attachable(typed)

        def take(part: FilePart | None) -> None:
            if part is None:
                self.query_one("#asked").focus()
            else:
                self.dismiss(part)

        run_in_background(self, part_of_it, take, self._fail)

    @on(Input.Submitted, "#asked")
    def _take_way(self) -> None:
        """Attach the text of the way that is marked, or read as it plans."""
        chosen = self.query_one("#ways", MarkedOptions).highlighted
        if self._stop is not None:
            return
        if not self.question:
            self._fail(UsageError(f"to read {self._text.name} takes a question", "say what you want to know of it"))
        elif chosen is None or not self._ways:
            self._look()
        elif (plan := self._ways[chosen].plan) is None:
            self.dismiss(self._ways[chosen].part)
        else:
            self._read(plan)

    @on(events.Click, "#ways")
    def _take_clicked(self, event: events.Click) -> None:
        """The first click marks a way."""
        if event.chain > 1:
            self._take_way()

    def _read(self, plan: ReadingPlan) -> None:
        """Read as planned; the fields wait meanwhile."""
        self._stop = stop = Cancellation()
        pace = ReadingPace(plan)
        for field in self.query(LineField):
            field.disabled = True
        self.set_focus(None)
        self.query_one(KeyHint).show("Escape ends the reading; what was read until then counts")

        def progressed(reader: PartReader, share: float, note: str) -> None:
            done = min(reader.n_read + share, reader.n_parts) / reader.n_parts
            tell(self, self._progress, done, pace.words(reader, share), note)

        run_in_background(self, lambda task: self._text.read(plan, progressed, stop), self._done, self._give_up)

    def _progress(self, done: float, words: str, note: str) -> None:
        self._cost(bar(done, _BAR, "$warning") + say(f" {words}"))
        if note:
            self._show_lines(note.split("\n"))

    def _done(self, reader: PartReader) -> None:
        if not reader.n_read:
            self._give_up(UsageError("the first part was not read to its end", "choose again, or Escape leaves"))
            return
        if reader.is_stopped or not reader.is_of_use:
            self.left_out = f"{self._text.name}: {reader.summary}"
        self.dismiss(reader.digest())

    def _give_up(self, error: LocalrunError) -> None:
        """Show an error that ended the reading, and take another question."""
        self._stop = None
        for field in self.query(LineField):
            field.disabled = False
        self.query_one("#asked").focus()
        self._fail(error)

    # ---- keys

    def action_leave(self) -> None:
        if self._stop is None:
            self.dismiss(None)
        else:
            self._end(self._stop)

    async def action_stop(self) -> None:
        if self._stop is None:
            await self.app.run_action("interrupt")
        else:
            self._end(self._stop)

    def _end(self, reading: Cancellation) -> None:
        reading.cancel()
        self.query_one(KeyHint).show("stopping: what was read until now counts")

    def action_choose(self, step: int) -> None:
        options = self.query_one("#ways", MarkedOptions)
        if self._stop is None and options.highlighted is not None:
            options.highlighted = (options.highlighted + step) % options.option_count

    def action_scroll(self, pages: int) -> None:
        look = self.query_one("#look")
        look.scroll_relative(y=pages * max(look.size.height - 1, 1), animate=False)

    def on_unmount(self) -> None:
        if self._stop is not None:
            self._stop.cancel()

    def _cost(self, words: Content) -> None:
        self.query_one("#cost", Static).update(words)


def _row(way: ReadingWay, room: int) -> Content:
    """The name of a way and its cost, and below what was joined."""
    about = wrap(say(way.about, "$foreground-muted"), room) if way.about else []
    return Content("\n  ").join([say(f" {way.name:<{_NAME}}", "bold") + say(way.cost), *about])
