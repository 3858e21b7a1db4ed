"""The question whether a tool may run: server, tool, arguments or what would change, and the answers."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun_tui.widgets.columns import say
from localrun_tui.widgets.marked_options import MarkedOptions

if TYPE_CHECKING:
    from localrun.tools.consent import Allowed, ConsentQuestion
    from localrun_tui.state.pending_consent import PendingConsent

_WORDS: "dict[Allowed, str]" = {"once": "Once", "chat": "For this chat", "always": "Always", "no": "No"}
_WIDEST_NAME = 16  # cells for names of arguments, behind which values are one below the other


class ConsentCard(Vertical):
    """Above the editor while a tool waits; hidden otherwise. It takes no key that was meant for the editor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "answer('once')", "Once", id="consent.once"),
        Binding("c", "answer('chat')", "This chat", id="consent.chat"),
        Binding("a", "answer('always')", "Always", id="consent.always"),
        Binding("n", "answer('no')", "No", id="consent.no"),
    ]

    def __init__(self, leave: Callable[[], object]) -> None:
        """`leave` moves the focus to where one types."""
        super().__init__(id="consent")
        self._leave = leave
        self.pending: PendingConsent | None = None
        self._what = Static("", id="consent-what")
        self.text = VerticalScroll(self._what, id="consent-scroll", can_focus=False)
        self._options = MarkedOptions(id="consent-choices", compact=True)

    def compose(self) -> ComposeResult:
        yield self.text
        yield self._options

    def show(self, pending: "PendingConsent", elsewhere: str = "") -> None:
        """Ask this; `elsewhere` is the title of its chat where another one is shown. Keys that are pressed by now were
        meant for the question before."""
        if self.has_focus_within:
            self._leave()
        self.pending = pending
        question = pending.question
        tool = question.tool
        name = " ".join(filter(None, (tool.server, tool.name)))
        self.border_title = say(f"{f'“{elsewhere}”' if elsewhere else 'The model'} wants to call {name}")
        self.border_subtitle = "F6 goes here, then Page↓ reads on; Esc stops the answer"
        self._what.update(_what(question))
        self._options.clear_options()
        self._options.add_options([Option(say(_WORDS[one])) for one in question.choices])
        self._options.highlighted = question.choices.index("no")
        self.display = True
        self.text.scroll_home(animate=False)
        self.refresh_bindings()

    def settle(self) -> None:
        """Hide it, where the question is answered or given up, and go back to typing."""
        if self.pending is None or not self.pending.is_open:
            self.pending = None
            if self.has_focus_within:
                self._leave()
            self.display = False

    def go_to(self) -> None:
        """Focus the answers."""
        self.screen.set_focus(self._options)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only answers that the question has."""
        return action != "answer" or (self.pending is not None and parameters[0] in self.pending.question.choices)

    def action_answer(self, allowed: "Allowed") -> None:
        if self.pending is not None:
            self.pending.answer(allowed)
            self.settle()

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.pending is not None:
            self.action_answer(self.pending.question.choices[event.option_index])


def _what(question: "ConsentQuestion") -> Content:
    """The folder or host that is allowed with the call, and what this would do, or its arguments as a table."""
    from localrun.tools.words import argument_rows

    lines = [say("for  ", "$text-warning") + say(question.scope)] if question.scope else []
    if question.preview:
        return Content("\n").join([*lines, *map(_preview_line, question.preview.split("\n"))])
    rows = argument_rows(json.dumps(question.arguments, ensure_ascii=False))
    width = min(max((len(name) for name, _ in rows), default=0), _WIDEST_NAME)
    lines += [say(f"{name:{width}}  ", "$foreground-muted") + say(value) for name, value in rows]
    return Content("\n").join(lines if rows else [*lines, say("no arguments", "$foreground-muted")])


def _preview_line(line: str) -> Content:
    style = {"+": "$text-success", "-": "$text-error", "@": "$foreground-muted"}.get(line[:1], "")
    return say(line, style) if style else say(line)
